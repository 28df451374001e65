"""Numbers that the stream's kernel and its readable twin must share."""

# Rows of ``table``: what is known of each context column.
MEAN, DEVIATIONS, COUNT, FROZEN, LOWER, UPPER = range(6)
TABLE_ROWS = 6
# Entries of ``options``: the question and the rules of a stream.
RADIUS, RADIUS_ROWS, ORDER, OUTCOME_COST, WITH_INTERCEPT, SCALED, BOXED, LOW_Y, HIGH_Y = range(9)
STEP_RULE, STEP_SIZE, AVERAGING, WINDOW = range(9, 13)
N_OPTIONS = 13
ADAPTIVE_RULE, CONSTANT_RULE, DECAYING_RULE = 0.0, 1.0, 2.0
# A column's parameter stays at zero until the column was seen this often; its spread is a guess
# before.
HELD_ROWS = 8.0
# A column with so many rows keeps its scale for ever: a fit without intercept knows no mean.
SETTLED_ROWS = 1e18
# A spread that is this small a share of the mean is rounding.
CONSTANT_SHARE = 1e-12
# A given step size is the distance over gradients with sums so large that one gradient adds nothing.
SETTLED_SQUARES = 1e200
# Row t enters the average with weight (1 + TAIL) / (t + TAIL): the newest tenth or so counts.
TAIL = 8.0
