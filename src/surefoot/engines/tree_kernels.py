"""Regression trees, grown and walked without Python between them (Breiman 2001).

Every column is put in order once; a tree keeps the rows of a node together in the order of each column,
so that a split is found by running sums and nothing is ever sorted again.
"""

import numpy as np

from surefoot.engines.compiling import kernel
from surefoot.engines.row_draws import up_to

# Contexts, in standard deviations, that are closer than this are the same.
SAME = 1e-7
# Outcomes, in standard deviations, with a smaller variance are the same.
NO_VARIANCE = 1e-14
# Of splits whose gains differ by a smaller share of the outcomes' squares the first is taken: outcomes
# that are counts tie often, and rounding, which is another in other units, must not decide.
TIE = 1e-11


@kernel()
def _draw(words, count, times):
    """Count how often each row is drawn, with replacement."""
    times[:] = 0
    for _ in range(count):
        times[up_to(words, np.uint64(len(times) - 1))] += 1


@kernel()
def _drawn_in_order(order, times, ordered):
    """Write the rows that were drawn in the order of each column; return how many there are."""
    count = 0
    for j in range(order.shape[0]):
        count = 0
        for k in range(order.shape[1]):
            # Written in any case, kept if drawn: a branch would be guessed wrong every third time.
            i = order[j, k]
            ordered[j, count] = i
            count += times[i] > 0
    return count


@kernel()
def _best_limit(contexts, ordered, j, start, stop, masses, weighted, whole, least):
    """Return the gain of the best limit of column j and how many rows it leaves below; or none."""
    mass, total, tie = whole
    first, last, one = np.uint64(start + least - 1), np.uint64(stop - least), np.uint64(1)
    mass_below, below = 0.0, 0.0
    for k in range(np.uint64(start), first):
        mass_below += masses[ordered[j, k]]
        below += weighted[ordered[j, k]]
    best, place = -np.inf, start
    # One pass: nodes are small, and limits judged several at once in passes of their own took longer.
    for k in range(first, last):
        i = ordered[j, k]
        mass_below += masses[i]
        below += weighted[i]
        above = total - below
        gain = below * below / mass_below + above * above / (mass - mass_below)
        if gain > best + tie and contexts[j, ordered[j, k + one]] > contexts[j, i] + SAME:
            best, place = gain, np.int64(k + one)
    return best, place - start


@kernel()
def _split(contexts, ordered, start, stop, told, least, asked, columns, words):
    """Return the column and the place of the best split among some columns; column -1 for none.

    Columns are asked in random order, as many as wanted, and on until one of them varies.
    """
    outcomes, masses, weighted = told
    mass, total, square = 0.0, 0.0, 0.0
    for k in range(np.uint64(start), np.uint64(stop)):
        i = ordered[0, k]
        mass += masses[i]
        total += weighted[i]
        square += masses[i] * outcomes[i] ** 2
    best, chosen, place = -np.inf, -1, 0
    if square / mass - (total / mass) ** 2 <= NO_VARIANCE:
        return chosen, place
    varies, tie = False, TIE * square
    for k in range(len(columns)):
        if k >= asked and varies:
            break
        other = k + np.int64(up_to(words, np.uint64(len(columns) - 1 - k)))
        j = columns[other]
        columns[other], columns[k] = columns[k], j
        if contexts[j, ordered[j, stop - 1]] <= contexts[j, ordered[j, start]] + SAME:
            continue
        varies = True
        gain, limit = _best_limit(
            contexts, ordered, j, start, stop, masses, weighted, (mass, total, tie), least
        )
        if gain > best + tie:
            best, chosen, place = gain, j, limit
    return chosen, place


@kernel()
def _part(ordered, start, middle, stop, chosen, below, spare):
    """Put the rows below first, in the order of each column."""
    for k in range(start, middle):
        below[ordered[chosen, k]] = 1
    for j in range(ordered.shape[0]):
        if j == chosen:
            continue
        left, right = np.uint64(start), np.uint64(0)
        for k in range(np.uint64(start), np.uint64(stop)):
            # Written to both sides, kept on one: a branch would be guessed wrong every other time.
            i = ordered[j, k]
            ordered[j, left] = i
            spare[right] = i
            low = np.uint64(below[i])
            left += low
            right += np.uint64(1) - low
        for k in range(right):
            ordered[j, left + k] = spare[k]
    for k in range(start, middle):
        below[ordered[chosen, k]] = 0


@kernel()
def _mean(rows, outcomes, masses):
    mass, total = 0.0, 0.0
    for i in rows:
        mass += masses[i]
        total += masses[i] * outcomes[i]
    return total / mass


@kernel()
def _wait(waiting, depth, node, start, stop):
    """Write down a node and its rows; of a row that takes a tuple Numba compiles for seconds."""
    waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = node, start, stop


@kernel()
def _grow(contexts, ordered, count, told, least, asked, words, room, table, node):
    """Grow one tree from ``node`` on, of which the mean is there; return the next free node.

    ``told`` is outcomes, weights and their product. ``room`` is what can be written over: nodes that
    wait, flags of rows, row numbers, columns.
    """
    outcomes, weights, _ = told
    (feature, threshold, below, above, value), (waiting, flags, spare, columns) = table, room
    _wait(waiting, 0, node, 0, count)
    node, depth = node + 1, int(count >= 2 * least)
    while depth > 0:
        depth -= 1
        parent, start, stop = waiting[depth, 0], waiting[depth, 1], waiting[depth, 2]
        chosen, place = _split(contexts, ordered, start, stop, told, least, asked, columns, words)
        if chosen < 0:
            continue
        middle, rows = start + place, ordered[chosen]
        feature[parent] = chosen
        # A row that was not drawn may lie halfway, as whole numbers do: rounding is no reason.
        low, high = contexts[chosen, rows[middle - 1]], contexts[chosen, rows[middle]]
        threshold[parent] = 0.5 * (low + high) + 0.5 * SAME
        below[parent], above[parent] = node, node + 1
        value[node] = _mean(rows[start:middle], outcomes, weights)
        value[node + 1] = _mean(rows[middle:stop], outcomes, weights)
        if max(middle - start, stop - middle) >= 2 * least:
            _part(ordered, start, middle, stop, chosen, flags, spare)
        if stop - middle >= 2 * least:
            _wait(waiting, depth, node + 1, middle, stop)
            depth += 1
        if middle - start >= 2 * least:
            _wait(waiting, depth, node, start, middle)
            depth += 1
        node += 2
    return node


@kernel()
def grow_trees(contexts, order, outcomes, masses, trees, drawn, least, asked, words):
    """Return a forest as one table of nodes, and how often each row was drawn for each tree.

    Parameters
    ----------
    contexts
        One column a row, in standard deviations, shape (columns, n).
    order
        The rows in the order of each column, shape (columns, n).
    outcomes, masses
        In standard deviations, and how often each row counts, shape (n,).
    trees, drawn
        How many, and how many rows are drawn, with replacement, for each.
    least
        Different rows of a leaf.
    asked
        Columns asked at a split.
    words
        Where a random generator stands (``generator_words``); it moves on.

    Returns
    -------
    feature, threshold, below, above, value
        Of each node; a leaf is its own child. Children come after their parent.
    roots
        The first node of each tree.
    times
        Shape (trees, n).
    """
    s, n = contexts.shape
    most = 2 * (min(n, drawn) // least) + 1
    feature = np.zeros(trees * most, dtype=np.int64)
    threshold, value = np.zeros(trees * most), np.zeros(trees * most)
    below, above = np.arange(trees * most), np.arange(trees * most)
    roots, times = np.empty(trees, dtype=np.int64), np.empty((trees, n), dtype=np.int64)
    # Unsigned row numbers need no look at whether they count from the end; one place is to spare.
    ordered = np.empty((s, min(n, drawn) + 1), dtype=np.uint32)
    weights, weighted = np.empty(n), np.empty(n)
    room = (
        np.empty((most, 3), dtype=np.int64), np.zeros(n, dtype=np.uint64),
        np.empty(n, dtype=np.uint32), np.arange(s),
    )  # fmt: skip
    table, node = (feature, threshold, below, above, value), np.int64(0)
    for tree in range(trees):
        _draw(words, drawn, times[tree])
        for i in range(n):
            weights[i] = masses[i] * times[tree, i]
            weighted[i] = weights[i] * outcomes[i]
        count = _drawn_in_order(order, times[tree], ordered)
        roots[tree], value[node] = node, _mean(ordered[0, :count], outcomes, weights)
        node = _grow(
            contexts, ordered, count, (outcomes, weights, weighted), least, asked, words, room, table,
            node,
        )  # fmt: skip
    return (
        feature[:node], threshold[:node], below[:node], above[:node], value[:node], roots, times
    )  # fmt: skip


@kernel()
def walk(contexts, feature, threshold, below, above, roots):
    """Return the node that each row ends at in each tree, shape (rows, trees)."""
    n = len(contexts)
    nodes, standing = np.empty((n, len(roots)), dtype=np.int64), np.empty(n, dtype=np.int64)
    for tree in range(len(roots)):
        standing[:] = roots[tree]
        moved = True
        while moved:
            # All rows take a step together: alone, each would wait for every one of its own.
            moved = False
            for i in range(n):
                node = standing[i]
                lower, upper = below[node], above[node]
                reached = lower if contexts[i, feature[node]] <= threshold[node] else upper
                moved |= reached != node
                standing[i] = reached
        for i in range(n):
            nodes[i, tree] = standing[i]
    return nodes


@kernel()
def leaf_samples(leaves, seen, told, order, nodes, count):
    """Return whole numbers that stand for each leaf, shape (leaves, count), and the place of each node.

    Of the rows that a tree was grown from the first of each leaf, in the order given, stand for it;
    again from the first where a leaf has fewer; ``told`` is the number of each row. Nodes that are no
    leaves have place 0.
    """
    n, trees = leaves.shape
    size, place = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    for i in range(n):
        for tree in range(trees):
            size[leaves[i, tree]] += seen[i, tree]
    n_leaves = 0
    for node in range(nodes):
        if size[node] > 0:
            place[node] = n_leaves
            n_leaves += 1
    samples = np.empty((n_leaves, count), dtype=np.int64)
    size[:] = 0
    for i in order:
        for tree in range(trees):
            node = leaves[i, tree]
            if seen[i, tree] and size[node] < count:
                samples[place[node], size[node]] = told[i]
                size[node] += 1
    for node in range(nodes):
        for k in range(size[node], count if size[node] > 0 else 0):
            samples[place[node], k] = samples[place[node], k % size[node]]
    return samples, place


@kernel()
def _smallest(values, count, place):
    """Return what is at a place of the first ``count`` put in order, which it moves (Hoare 1961).

    NumPy's partition does the same, and takes Numba five seconds to compile.
    """
    low, high = 0, count - 1
    while low < high:
        pivot, i, j = values[place], low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if j < place:
            low = i
        if place < i:
            high = j
    return values[place]


@kernel()
def unseen_quantiles(samples, places, seen, quantile):
    """Return of each row the quantile over the trees that never saw it; -1 where all did.

    Parameters
    ----------
    samples
        Whole numbers, from 0 on, that stand for each leaf.
    places
        Of each row and tree, the leaf's place in ``samples``.
    seen
        Of each row and tree, whether the tree was grown from the row.
    quantile
        Its level.
    """
    (n, trees), each = places.shape, samples.shape[1]
    decided, values = np.full(n, -1), np.empty(trees * each, dtype=np.int64)
    for i in range(n):
        count = 0
        for tree in range(trees):
            if not seen[i, tree]:
                for k in range(each):
                    values[count + k] = samples[places[i, tree], k]
                count += each
        if count > 0:
            at = min(max(int(np.ceil(quantile * count - 1e-9)) - 1, 0), count - 1)
            decided[i] = _smallest(values, count, at)
    return decided
