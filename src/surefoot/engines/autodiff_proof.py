"""Linear policies of the autodiff engine whose worst case is known exactly, whatever ascents find."""

from surefoot.certificates import Certificate
from surefoot.certificates.squares import squares_certificate, why_not_squares
from surefoot.engines.affine_proof import affine_certificate
from surefoot.engines.closed_squares import best_squares
from surefoot.engines.engine import Parameters
from surefoot.engines.joint import joint_certificate
from surefoot.nominals import Empirical
from surefoot.policies import LinearParameters
from surefoot.problem import GeneralForm, Problem, why_not_affine, why_not_joint


def exact_certificate(
    problem: Problem | None, form: GeneralForm, parameters: Parameters, target: float
) -> Certificate | None:
    """Return a certificate of a policy whose worst case is known exactly, None of others.

    ``target`` is how closely the best policy is bounded, where that takes rounds.
    """
    if problem is None or not isinstance(parameters, LinearParameters):
        return None
    if why_not_squares(form) is None:
        return squares_certificate(form, parameters, best_squares(form)[1])
    if why_not_joint(problem) is None:
        least = form.cost.floor(problem.nominal.n_products)
        return joint_certificate(problem, parameters, least, target)
    if why_not_affine(problem) is None and isinstance(problem.nominal, Empirical):
        return affine_certificate(problem, parameters, target)
    return None
