"""
Orders on request: a service
============================

A till asks for today's order in the morning, and gets it over HTTP. A fitted model is a file that is
read in milliseconds and decides in less than one, so Python's own web server is all that it takes.
"""

# %%
# Fit once, keep the file. The service knows nothing but the file and the names of its columns.

import json
import tempfile
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from surefoot import RobustNewsvendor, load
from surefoot.datasets import load_yaz

data = load_yaz(drop_closed=True)
contexts, demand, past = data.contexts, data.product("steak"), 500
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "steak.surefoot"
RobustNewsvendor(backorder=15, holding=10).fit(contexts[:past], demand[:past]).save(path)
model = load(path)


class Orders(BaseHTTPRequestHandler):
    """Answers a context as JSON with the order, or with what is wrong with the context."""

    def do_POST(self):
        """Decide, or say which columns must be there."""
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        missing = [name for name in data.feature_names if not isinstance(told.get(name), int | float)]
        if missing:
            self.answer(400, {"error": f"The context must have numbers for {', '.join(missing)}."})
        else:
            row = [[told[name] for name in data.feature_names]]
            self.answer(200, {"order": float(model.predict(row)[0])})

    def answer(self, status, what):
        """Write a status and some JSON."""
        body = json.dumps(what).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Keep quiet."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Orders)
threading.Thread(target=server.serve_forever, daemon=True).start()

# %%
# The till, day after day. A mistake is a sentence that says what is missing.


def ask(context):
    """Return what the service answers."""
    url = f"http://127.0.0.1:{server.server_port}/order"
    try:
        with urllib.request.urlopen(url, json.dumps(context).encode()) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            return json.load(refused)


print(ask(dict.fromkeys(data.feature_names[1:], 0.0)))
orders, milliseconds = [], []
for row in contexts[past:]:
    began = time.perf_counter()
    orders.append(ask(dict(zip(data.feature_names, row.tolist(), strict=True)))["order"])
    milliseconds.append(1e3 * (time.perf_counter() - began))
server.shutdown()
server.server_close()
folder.cleanup()
assert np.allclose(orders, model.predict(contexts[past:]))

# %%
# Most of the wait is the web, not the decision.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=(2, 1), layout="constrained")
left.plot(demand[past : past + 90], color="#8a8577", label="sold")
left.plot(orders[:90], color="#0b6e72", label="order, asked for in the morning")
left.set(xlabel="day", ylabel="portions", title="Ninety days of orders on request")
left.legend(frameon=False)
right.hist(milliseconds, bins=np.linspace(0, np.quantile(milliseconds, 0.98), 25), color="#0b6e72")
right.set(xlabel="milliseconds to an answer", ylabel="requests", title="What the till waits for")
print(f"half of {len(orders)} answers came within {np.median(milliseconds):.1f} ms")
