import numpy as np

from surefoot.baselines.basis import Basis


def test_exchanges_keep_the_inverse_of_the_matrix_where_rows_and_columns_cross():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(9, 12))
    basis = Basis(matrix)
    rows, columns = [], []
    for _ in range(200):
        free_rows = [i for i in range(9) if i not in rows]
        free_columns = [j for j in range(12) if j not in columns]
        moves = ["grow"] * bool(free_rows and len(rows) < 7)
        moves += ["shrink", "row", "column"] * bool(rows)
        move = moves[rng.integers(len(moves))]
        place, other = (int(v) for v in rng.integers(max(len(rows), 1), size=2))
        if move == "grow":
            basis.grow(free_rows[0], free_columns[0])
            rows.append(free_rows[0])
            columns.append(free_columns[0])
        elif move == "shrink":
            basis.shrink(place, other)
            rows[place], columns[other] = rows[-1], columns[-1]
            rows.pop()
            columns.pop()
        elif move == "row":
            basis.swap_row(place, free_rows[-1])
            rows[place] = free_rows[-1]
        else:
            basis.swap_column(place, free_columns[-1])
            columns[place] = free_columns[-1]
        assert basis.rows.tolist() == rows
        assert basis.columns.tolist() == columns
        np.testing.assert_array_equal(basis.row_block, matrix[rows])
        np.testing.assert_array_equal(basis.column_block, matrix[:, columns])
        square = matrix[np.ix_(rows, columns)]
        if np.linalg.cond(square) > 1e5 if rows else False:
            basis.refresh()
        np.testing.assert_allclose(basis.inverse @ square, np.eye(len(rows)), atol=1e-6)
    basis.refresh()
    np.testing.assert_allclose(
        basis.inverse @ matrix[np.ix_(rows, columns)], np.eye(len(rows)), atol=1e-10
    )


def test_a_known_combination_changes_nothing():
    matrix = np.random.default_rng(1).normal(size=(4, 5))
    one, two = Basis(matrix), Basis(matrix)
    for basis in (one, two):
        basis.grow(0, 1)
    one.grow(2, 3)
    two.grow(2, 3, two.combination(3))
    one.swap_column(0, 4)
    two.swap_column(0, 4, two.combination(4))
    np.testing.assert_allclose(one.inverse, two.inverse, rtol=1e-12)
