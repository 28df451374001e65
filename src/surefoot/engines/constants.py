"""Numbers that a kernel and its readable twin must share."""

# The running mean of squared slopes starts as if this many slopes had been seen...
PRIOR_SLOPES = 10.0
# ...and never averages over more than this many, so that it can follow a moving policy.
SLOPE_WINDOW = 10_000.0
# A step of the log-multiplier: this many units over the root of its summed squared gradients.
LOG_STEP = 1.0
# In a box that is open on a side, the multiplier of order 1 stays this share above the one at which
# the adversary could leave for infinity.
HOLDING_SHARE = 1e-6
# From this step size times price on, DA-SGD with memory steps along the norm implicitly.
STIFF_SHARE = 0.3
# Order 1 with moving outcomes prices ||theta|| only above 1/kappa. The price sets in over this share of
# that length, so that a policy that belongs on the border can stay there.
SPHERE_WIDTH = 0.06
# Policies are averaged once in this many steps: neighbours are too alike to count each.
AVERAGE_EVERY = 16
