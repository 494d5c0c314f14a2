"""How sure a fit is: variances that are zero or would be, standard errors, and the law of plausible
priors around it.

A covariance is drawn as ``L L'`` with L normal, so that every draw is one, also at a boundary,
where a variance is zero but plausible ones are not. By itself that would be too wide: what is not
known of L adds to the variances. The mean of L is therefore shortened by as much, so that the mean
of a drawn covariance is the fitted one, along its principal axes. Standard deviations of its
entries are their standard errors where these are well below the smallest eigenvalues. Where they
are not, the two differ, entry by entry, mostly downwards: covariances as far from the fit as that
in every direction at once are not positive.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, final

import numpy as np

from priorwise.core import validation
from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.normal.likelihood.model import ZERO, Chart, Place, Structure
from priorwise.families.normal.likelihood.tasks import Parameters, Units
from priorwise.fitting.fits import Uncertainty
from priorwise.fitting.newton import Climb, positive_root

NEWTON: Final = 40
"""Arms or features beyond which second derivatives in the whole covariance cost too much, and a
quasi-Newton method takes over.
"""
DIFFERENCES: Final = 150
"""Most coordinates for which, beyond, standard errors are found by differences of the gradient."""


def to_boundary(found: Climb[Place], tolerance: float) -> tuple[Climb[Place], bool]:
    """Set small variances to zero if that costs no likelihood; return whether it did."""
    place, model = found.place, found.place.model
    most = model.tasks.pulls.max(axis=0)
    noise = np.where(most > 0.0, place.at.noise / np.where(most > 0.0, most, 1.0), 0.0)
    scale = float(np.trace(place.at.cov) + noise.sum()) / len(most)
    for small in (1e-2, 1e-4, 1e-6, 1e-9):
        root, dropped = model.chart.trimmed(place.root, small * scale)
        if dropped:
            x = place.x.copy()
            x[slice(*model.cuts)] = model.chart.read(root)
            trial = model.at(x)
            if trial.value >= place.value - 10.0 * tolerance:
                return replace(found, place=trial), True
    return found, False


def would_be_on_edge(place: Place, groups: int | None = None) -> bool:
    """Whether the first so many groups, the data without what regularises, are likelier with the
    smallest variance at zero.
    """
    root, _ = place.model.chart.trimmed(place.root)
    flat = place.model.tasks.sums(replace(place.at, cov=root @ root.T))
    return float((flat.values - place.sums.values)[:groups].sum()) >= 0.0


def certainty(
    place: Place,
    units: Units,
    structure: Structure,
    noise: FloatArray,
    *,
    active: BoolArray,
    on_edge: bool,
    floor: float = 0.0,
) -> "tuple[dict[str, FloatArray], NormalUncertainty | None, list[str]]":
    """Standard errors and the law of plausible priors, from the observed information, and what to
    warn of.

    A full covariance is seen in its eigenvectors, so that the order of the arms does not matter.

    Parameters
    ----------
    place
        Where the ascent ended.
    units
        Of the fit.
    structure
        Of the covariance.
    noise
        That of all arms, or one number, in the unit of the rewards.
    active
        Arms that were pulled, ``(all arms,)``; the fit has no others.
    on_edge
        Whether some variance is zero.
    floor
        The least that is known of any direction, in units of the fit.

    """
    model, chart, root = place.model, place.model.chart, place.root
    if len(root) <= NEWTON:
        if chart.triangular:
            chart = Chart("full", len(root), around=place.at.cov)
            own = np.diag(chart.axes.T @ place.at.cov @ chart.axes)
            root = chart.axes * np.sqrt(np.where(own > ZERO * own[0], own, 0.0))
        information = place.information(chart, root)
    elif model.size <= DIFFERENCES:
        steps = 1e-5 * np.eye(place.x.size)
        ends = np.concatenate([place.x - steps, place.x + steps])
        back, there = np.split(np.array([model.at(x, curved=False).gradient for x in ends]), 2)
        information = (back - there) / 2e-5
    else:
        return {}, None, [f"no standard errors: {model.size} parameters are too many"]
    begin, end = model.mean_map.shape[1], model.mean_map.shape[1] + chart.size
    if on_edge:
        _widen_edge(place, chart, root, information[begin:end, begin:end])
    inverse, determined = positive_root(information, floor=floor)
    beta, theta, tau = np.split(inverse, (begin, end))
    # how mean, root and logarithm of the noise move with standard normals, in the rewards' units
    mean, log_noise = units.weight[:, None] * (model.mean_map @ beta), model.noise_map @ tau
    root, moves = units.weight[:, None] * root, units.weight[:, None, None] * chart.root(theta)
    middle, roots = units.centre + units.weight * place.at.mean, centred(root, moves, chart.axes)
    arms = active.astype(np.float64)
    law = NormalUncertainty(structure, arms, middle, mean, *roots, noise, log_noise)
    half = np.einsum("acz,bc->abz", moves, root)
    cov = half + half.transpose(1, 0, 2)
    errors = {"mean": np.linalg.norm(mean, axis=-1), "cov": np.linalg.norm(cov, axis=-1)}
    if structure == "exchangeable":
        errors = _alike(mean, cov, root @ root.T)
    if on_edge:
        errors = {"mean": errors.pop("mean")} | {k: v * np.nan for k, v in errors.items()}
    if tau.size:
        estimated = model.noise_map.any(axis=1)
        sizes = place.at.noise * units.reward**2 * np.linalg.norm(log_noise, axis=-1)
        errors["noise_var"] = np.where(estimated, sizes, np.nan)
        if structure == "exchangeable" or noise.ndim == 0:
            errors["noise_var"] = errors["noise_var"][0]
    if not active.all():
        for name, error in errors.items():
            whole = np.full((len(active),) * error.ndim, np.nan)
            whole[np.ix_(*[active] * error.ndim)] = error
            errors[name] = whole
    undetermined = "the data leave some directions of the covariance undetermined"
    return errors, law, [] if determined else [undetermined]


def _alike(mean: FloatArray, cov: FloatArray, at: FloatArray) -> dict[str, FloatArray]:
    """Standard errors of what exchangeable arms have in common, given how the mean ``(d, z)`` and
    the covariance ``(d, d, z)``, which is ``at``, move with standard normals z.
    """
    var, along, size = cov[0, 0], cov[0, -1], at[0, 0]
    ratio = at[0, -1] / size if size > 0.0 else 0.0
    correlation = float(np.linalg.norm(along - ratio * var)) / max(size, 1e-300)
    return {
        "mean": np.array(float(np.linalg.norm(mean[0]))),
        "var": np.array(float(np.linalg.norm(var))),
        "correlation": np.array(correlation if len(mean) > 1 else np.nan),
    }


def _widen_edge(place: Place, chart: Chart, root: FloatArray, information: FloatArray) -> None:
    """Add to the information about roots of variances at zero, whose slope N may be flat, what
    curvature has to say.

    With ``y = x^2`` the likelihood falls as ``exp(-N x^2 - c x^4 / 2)``. For small N the fourth
    power limits x: it is counted as a further precision ``2 sqrt(c)``, for which ``c = sum P^2 /
    2`` is replaced by ``(sum P)^2 / 2T``, its least value.
    """
    slope = place.sums.precision / np.sqrt(2.0 * place.model.tasks.tasks.sum())
    jacobian, bend = chart.curves(root, slope)
    (idle,) = np.nonzero(~jacobian.any(axis=(1, 2)))
    information[np.ix_(idle, idle)] += bend[np.ix_(idle, idle)]


@final
@dataclass(frozen=True, eq=False)
class NormalUncertainty(Uncertainty):
    """With z standard normal: mean ``mean + mean_moves z``, covariance ``L L'``, ``L = root +
    root_moves z``, and log-normal noise.

    The mean over draws is the fit, but for variances at zero, and the order of the arms or features
    does not matter. Arms outside ``active`` were never pulled; they get the average of the others,
    as in the fit.
    """

    family: ClassVar[str] = "gaussian-uncertainty"

    structure: Structure
    active: FloatArray  # (all arms,): 1 or 0
    mean: FloatArray  # (arm,)
    mean_moves: FloatArray  # (arm, z)
    root: FloatArray  # (arm, column)
    root_moves: FloatArray  # (arm, column, z)
    noise: FloatArray  # (all arms,), or one number
    noise_moves: FloatArray  # (arm, z), of the logarithm; (1, z) for one number

    def __post_init__(self) -> None:
        """Freeze the law."""
        arrays = {name: each for name, each in vars(self).items() if name != "structure"}
        frozen = {name: np.array(each, dtype=np.float64) for name, each in arrays.items()}
        validation.freeze(self, **frozen)

    def moved(self, by: FloatArray) -> "NormalUncertainty":
        """Return the law with another mean; ``by`` is for all arms."""
        return replace(self, mean=self.mean + by[self.active.astype(bool)])

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """Draw z and return the priors."""
        active = self.active.astype(bool)
        z = rng.standard_normal((n, self.mean_moves.shape[1]))
        means = self.mean + z @ self.mean_moves.T
        own = self.noise[active] if self.noise.ndim else self.noise
        noises = own * np.exp(z @ self.noise_moves.T - 0.5 * (self.noise_moves**2).sum(axis=1))
        draws = []
        for each, mean, noise in zip(z, means, noises, strict=True):
            root = self.root + self.root_moves @ each
            at = Parameters(mean, root @ root.T, noise if self.noise.ndim else noise[0])
            whole = with_others(at, active, self.noise)
            draws.append(prior.replaced(**named(self.structure, whole)))
        return draws


def centred(root: FloatArray, moves: FloatArray, axes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Keep the variance along each axis: a row ``l + M z`` of the root gets the mean ``|l|^2`` of
    its squared length.

    That is ``m = |l|^2`` plus ``k = tr(M M')`` before; l is shortened to ``m - k``. Where k is
    above m, M is shortened to m, for a variance cannot be less known than if nothing but its size
    were: l is then zero. Rows of zero, at a boundary, stay as they are. In the end the same small
    change is made to the arms' variances, as the axes' moves are correlated, by scaling their rows.

    Parameters
    ----------
    root, moves
        The root, ``(arm, column)``, and how it moves with z, ``(arm, column, z)``.
    axes
        Orthogonal directions, ``(arm, axis)``.

    """
    rows, steps = axes.T @ root, np.tensordot(axes.T, moves, axes=1)
    m, k = (rows**2).sum(axis=1), (steps**2).sum(axis=(1, 2))
    inside = m > 0.0
    damped = np.where(inside & (k > m), np.sqrt(m / np.where(k > m, k, 1.0)), 1.0)
    kept = np.sqrt(1.0 - np.minimum(k / np.where(inside, m, 1.0), 1.0))
    rows *= np.where(inside, kept, 1.0)[:, None]
    steps *= damped[:, None, None]
    new, more = axes @ rows, np.tensordot(axes, steps, axes=1)
    before, after = (root**2).sum(axis=1), (new**2).sum(axis=1) + (more**2).sum(axis=(1, 2))
    scale = np.where(before > 0.0, np.sqrt(before / np.where(after > 0.0, after, 1.0)), 1.0)
    return scale[:, None] * new, scale[:, None, None] * more


def with_others(at: Parameters, active: BoolArray, noise: FloatArray) -> Parameters:
    """Give arms that are not active the mean of the others' means and variances, no correlation,
    and the given noise.
    """
    if active.all():
        return at
    cov = np.diag(np.full(len(active), np.diag(at.cov).mean()))
    cov[np.ix_(active, active)] = at.cov
    mean = np.full(len(active), at.mean.mean())
    mean[active] = at.mean
    whole = noise.copy()
    whole[active] = at.noise
    return Parameters(mean, cov, whole)


def named(structure: Structure, at: Parameters) -> dict[str, Any]:
    """Arguments of the prior with these parameters."""
    if structure != "exchangeable":
        return {"mean": at.mean, "cov": at.cov, "noise_var": at.noise}
    arms, var = len(at.mean), float(at.cov[0, 0])
    correlation = float(at.cov[0, -1]) / var if var > 0.0 and arms > 1 else 0.0
    least = -1.0 / (arms - 1) if arms > 1 else -1.0
    common = {"mean": float(at.mean[0]), "var": var, "noise_var": float(at.noise[0])}
    return common | {"correlation": min(max(correlation, least), 1.0)}
