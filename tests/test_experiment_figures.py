"""Figures of the experiments: the envelope against loops, files that open, names that are there and
do not overlap.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import pytest
from counting import calls
from matplotlib.figure import Figure
from matplotlib.text import Text
from raising import raises

from priorwise.experiments import problems
from priorwise.experiments.experiment import Files
from priorwise.families.finite.prior import FinitePrior
from priorwise.figures import heat_maps, style, theory
from priorwise.figures.boxes import performance_boxes
from priorwise.figures.envelope import envelope
from priorwise.figures.heat_maps import first_pull_map, instance_map
from priorwise.figures.ladder import Bar, ladder_figure
from priorwise.figures.learning import KNOWN, learning_curves, looks
from priorwise.figures.tables import Table

CURVE_COLUMNS = ("algorithm", "t0", "replicate", "episode", "average")
GAUSSIAN = {
    "OracleTS": (5.38, 0),
    "MisTS": (3.48, 0),
    "MetaTS:no-cov": (3.9, 5),
    "MetaTS:full": (4.9, 5),
}
LINEAR = {"OracleTS": (24.86, 0), "MisTS": (12.4, 0), "MetaTS:full": (22.0, 4)}
DISCRETE = {
    "OracleTS": (7.45, 0),
    "MisTS": (3.44, 0),
    "MetaTS": (7.4, 3),
    "OracleKG": (9.04, 0),
    "MisKG": (7.67, 0),
    "MetaKG": (9.0, 3),
}


def curve_table(
    algorithms: dict[str, tuple[float, int]], seed: int, replicates: int = 6, episodes: int = 12
) -> Table:
    """Each algorithm's limit and number of exploration lengths (0: does not explore)."""
    rng = np.random.default_rng(seed)
    grid = np.arange(1, episodes + 1) * 50
    rows: list[tuple[str, int, int, int, float]] = []
    for name, (limit, sizes) in algorithms.items():
        for t0 in range(100, 100 * (sizes + 1), 100) if sizes else [0]:
            for replicate in range(replicates):
                explored = np.minimum(t0 / grid, 1.0)
                average = explored + (1 - explored) * (limit - 200 / t0 if t0 else limit)
                noisy = average + 0.2 * rng.standard_normal(grid.size)
                rows += [
                    (name, t0, replicate, int(e), float(v))
                    for e, v in zip(grid, noisy, strict=True)
                ]
    return {
        column: np.array(values)
        for column, values in zip(CURVE_COLUMNS, zip(*rows, strict=True), strict=True)
    }


def box_table(algorithms: dict[str, tuple[float, int]], seed: int, replicates: int = 30) -> Table:
    rng = np.random.default_rng(seed)
    names = np.repeat(list(algorithms), replicates)
    return {
        "algorithm": names,
        "t0": np.array([5000 if algorithms[name][1] else 0 for name in names]),
        "replicate": np.tile(np.arange(replicates), len(algorithms)),
        "reward": np.array([algorithms[name][0] for name in names])
        + 0.1 * rng.standard_normal(names.size),
    }


def instance_table() -> Table:
    prior = problems.discrete().prior
    assert isinstance(prior, FinitePrior)
    task, arm = (index.ravel() for index in np.indices(prior.means.shape))
    return {
        "task": task,
        "arm": arm,
        "reward": prior.means.ravel(),
        "probability": prior.probs[task],
    }


def first_pull_table(seed: int) -> Table:
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(20, 0.2), size=6)
    counts = np.stack([rng.multinomial(40_000, law) for law in laws])
    return {
        "algorithm": np.repeat(list(DISCRETE), 20),
        "arm": np.tile(np.arange(20), 6),
        "count": counts.ravel(),
    }


def by_loop(table: Table) -> list[tuple[str, int, float, float, int]]:
    rows = list(zip(*(table[column].tolist() for column in CURVE_COLUMNS), strict=True))
    out = []
    for name in dict.fromkeys(row[0] for row in rows):
        for episode in sorted({row[3] for row in rows if row[0] == name}):
            best = None
            for t0 in sorted({row[1] for row in rows if row[0] == name}):
                values = [row[4] for row in rows if (row[0], row[1], row[3]) == (name, t0, episode)]
                if best is None or np.mean(values) > best[2]:
                    error = (
                        np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
                    )
                    best = (name, episode, float(np.mean(values)), float(error), t0)
            assert best is not None
            out.append(best)
    return out


def same(found: Table, wanted: list[tuple[str, int, float, float, int]]) -> None:
    names, episodes, means, errors, sizes = zip(*wanted, strict=True)
    assert found["algorithm"].tolist() == list(names)
    assert found["episode"].tolist() == list(episodes)
    np.testing.assert_allclose(found["mean"], means, rtol=1e-12)
    np.testing.assert_allclose(found["std_error"], errors, rtol=1e-9)
    assert found["t0"].tolist() == list(sizes)


class TestEnvelope:
    def test_equals_the_loop(self, seed: int) -> None:
        table = curve_table(GAUSSIAN, seed)
        found = envelope(table)
        same(found, by_loop(table))
        # the best length changes along the way
        assert len(set(found["t0"][found["algorithm"] == "MetaTS:full"])) > 1

    def test_does_not_depend_on_the_order_of_rows(self, seed: int) -> None:
        table = curve_table(GAUSSIAN, seed)
        order = np.random.default_rng(seed).permutation(table["t0"].size)
        shuffled = {column: values[order] for column, values in table.items()}
        first, second = envelope(table), envelope(shuffled)
        for name in GAUSSIAN:
            for column in ("episode", "mean", "std_error", "t0"):
                np.testing.assert_array_equal(
                    first[column][first["algorithm"] == name],
                    second[column][second["algorithm"] == name],
                )

    @pytest.mark.parametrize("flip", [False, True])
    def test_among_equals_the_shortest_exploration_wins(self, seed: int, flip: bool) -> None:
        table = curve_table({"MetaTS": (3.0, 1)}, seed)
        twins = {column: np.concatenate([values, values]) for column, values in table.items()}
        twins["t0"] = np.repeat([300, 200] if flip else [200, 300], table["t0"].size)
        found = envelope(twins)
        assert set(found["t0"].tolist()) == {200}
        same(found, by_loop(twins))

    def test_one_replicate_has_no_standard_error(self, seed: int) -> None:
        table = curve_table(GAUSSIAN, seed, replicates=1)
        found = envelope(table)
        same(found, by_loop(table))
        assert np.isnan(found["std_error"]).all()

    def test_one_episode(self, seed: int) -> None:
        table = curve_table(GAUSSIAN, seed, episodes=1)
        same(envelope(table), by_loop(table))

    def test_algorithms_may_have_grids_of_their_own(self, seed: int) -> None:
        short, long = (
            curve_table({"MisTS": (3.0, 0)}, seed, episodes=3),
            curve_table({"MetaTS": (3.0, 2)}, seed, episodes=7),
        )
        table = {column: np.concatenate([short[column], long[column]]) for column in CURVE_COLUMNS}
        same(envelope(table), by_loop(table))

    def test_counts_while_it_explores(self) -> None:
        """At episode 10 both still explore, and the one that will commit later is ahead: it is the
        envelope there.
        """
        table = {
            "algorithm": np.array(["MetaTS"] * 4),
            "t0": np.array([20, 20, 40, 40]),
            "replicate": np.zeros(4, dtype=int),
            "episode": np.array([10, 100, 10, 100]),
            "average": np.array([1.0, 4.0, 1.5, 3.0]),
        }
        found = envelope(table)
        assert found["t0"].tolist() == [40, 20]
        assert found["mean"].tolist() == [1.5, 4.0]

    def test_many_rows_take_no_more_calls_than_few(self, seed: int) -> None:
        """A million rows in array operations: a loop over rows or groups calls more functions the
        more there are.
        """

        def table(lengths: int, size: int, episodes: int) -> Table:
            axes = np.arange(1, lengths + 1) * 50, np.arange(size), np.arange(1, episodes + 1) * 50
            t0, replicate, episode = (a.ravel() for a in np.meshgrid(*axes, indexing="ij"))
            average = np.random.default_rng(seed).standard_normal(t0.size)
            name = np.full(t0.size, "MetaTS:full")
            return {
                "algorithm": name,
                "t0": t0,
                "replicate": replicate,
                "episode": episode,
                "average": average,
            }

        few, many = table(2, 2, 2), table(100, 50, 200)
        assert calls(lambda: envelope(many)) == calls(lambda: envelope(few))
        found = envelope(many)
        cube = many["average"].reshape(100, 50, 200).mean(axis=1)
        np.testing.assert_allclose(found["mean"], cube.max(axis=0), rtol=1e-12)
        np.testing.assert_array_equal(found["t0"], 50 * (1 + cube.argmax(axis=0)))

    def test_names_a_replicate_that_is_there_twice(self, seed: int) -> None:
        table = {
            column: np.concatenate([values, values[-1:]])
            for column, values in curve_table(GAUSSIAN, seed).items()
        }
        with raises("curves", "MetaTS:full, t0 500, replicate 5, episode 600"):
            envelope(table)

    def test_names_a_configuration_that_is_not_there(self, seed: int) -> None:
        table = curve_table(GAUSSIAN, seed)
        keep = ~(
            (table["algorithm"] == "MetaTS:full") & (table["t0"] == 300) & (table["episode"] == 150)
        )
        with raises("curves", "no row with algorithm MetaTS:full, t0 300"):
            envelope({column: values[keep] for column, values in table.items()})


def two_panels(seed: int) -> Files:
    return learning_curves(
        {"Gaussian bandit": curve_table(GAUSSIAN, seed), "Linear": curve_table(LINEAR, seed)},
        "Learning",
    )


def with_ours(seed: int) -> Files:
    new = {
        "EmpiricalBayes": (5.3, 0),
        "MetaTS:likelihood": (5.31, 2),
        "HierTS": (5.32, 0),
        "AdaTS": (5.33, 0),
    }
    return learning_curves(curve_table(GAUSSIAN | new, seed), "Gaussian", ours=list(new))


def discrete_curves(seed: int) -> Files:
    return learning_curves(
        curve_table(DISCRETE, seed), "Discrete bandit: 20 arms, 10 pulls, 16 tasks", note="More."
    )


def one_box_panel(seed: int) -> Files:
    title = (
        "Linear contextual bandit: last 1,000 episodes, exploration over the first 1,000 of them"
    )
    return performance_boxes(box_table(LINEAR, seed), title, ours=["MetaTS:full"])


def two_box_panels(seed: int) -> Files:
    return performance_boxes(
        {"Gaussian": box_table(GAUSSIAN, seed), "Linear": box_table(LINEAR, seed)},
        "Test performance",
    )


def the_instance(seed: int) -> Files:
    return instance_map(instance_table(), "The instance", note="A reconstruction.")


def the_first_pulls(seed: int) -> Files:
    return first_pull_map(first_pull_table(seed), "First pulls")


ARMS = [f"A{arm}" for arm in range(1, 21)]
FIGURES: dict[str, tuple[Callable[[int], Files], list[str]]] = {
    "two panels": (
        two_panels,
        [
            *GAUSSIAN,
            "Gaussian bandit",
            "Linear",
            "episode",
            "±2 standard errors over 6 replicates",
            "envelope",
        ],
    ),
    "ours": (with_ours, [*GAUSSIAN, "EmpiricalBayes *", "AdaTS *", "not in the paper"]),
    "discrete": (discrete_curves, [*DISCRETE, "More."]),
    "one box panel": (
        one_box_panel,
        ["OracleTS, mean", "MisTS", "MetaTS:full *", "T₀ = 5,000", "30 replicates"],
    ),
    "two box panels": (two_box_panels, [*GAUSSIAN, "average reward per test episode", "Gaussian"]),
    "instance": (the_instance, [*ARMS, "9/40", "1/120", "0.4", "prior", "task", "reconstruction"]),
    "first pulls": (the_first_pulls, [*ARMS, *DISCRETE, "non-linear"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_files_open_and_are_the_same_twice(name: str, seed: int) -> None:
    draw, words = FIGURES[name]
    files = draw(seed)
    assert set(files) == {"png", "svg"}
    assert files["png"].startswith(b"\x89PNG")
    assert files["png"].endswith(b"IEND\xaeB`\x82")
    assert ET.fromstring(files["svg"]).tag.endswith("svg")
    text = files["svg"].decode()
    assert [word for word in words if word not in text] == []
    # vectors, apart from the ramp of a colour bar
    assert text.count("<image") == (name in {"instance", "first pulls"})
    assert draw(seed) == files


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_no_text_overlaps_another_or_leaves_the_figure(
    name: str, seed: int, drawn: list[Figure]
) -> None:
    FIGURES[name][0](seed)
    assert clashes(drawn[0]) == []


def test_the_check_of_overlaps_sees_one(
    seed: int, drawn: list[Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(style, "spread", lambda heights, *_: list(heights))
    with_ours(seed)
    assert any("HierTS" in first or "HierTS" in second for first, second in clashes(drawn[0]))


def test_curves_show_the_envelope(seed: int, drawn: list[Figure]) -> None:
    """Each line is the envelope of its algorithm, each band two standard errors wide, each name
    with its last value.
    """
    table = curve_table(GAUSSIAN, seed)
    learning_curves(table, "Learning")
    axes, best = drawn[0].axes[0], envelope(table)
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "episode",
        "cumulative average reward per episode",
    )
    colours = {line.get_color(): line for line in axes.lines}
    ends = {text.get_text() for text in axes.texts}
    for name, band in zip(GAUSSIAN, axes.collections, strict=True):
        own = best["algorithm"] == name
        episode, mean, error = (best[column][own] for column in ("episode", "mean", "std_error"))
        line = colours[KNOWN[name].colour]
        np.testing.assert_array_equal(line.get_xydata(), np.stack([episode, mean], axis=1))
        assert f"{name}  {mean[-1]:.2f}" in ends
        corners = {tuple(corner) for corner in band.get_paths()[0].vertices.round(9)}
        assert corners == {
            (e, y)
            for e, m, s in zip(episode, mean, error, strict=True)
            for y in np.round([m - 2 * s, m + 2 * s], 9)
        }


def test_boxes_show_the_test_table(seed: int, drawn: list[Figure]) -> None:
    """In the row of its name: a dot for each replicate, and the mean in words."""
    table = box_table(GAUSSIAN, seed)
    performance_boxes(table, "Test")
    axes = drawn[0].axes[0]
    rows = {
        label.get_text(): place
        for place, label in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    }
    assert list(rows) == list(GAUSSIAN)
    assert axes.get_xlabel() == "average reward per test episode"
    texts = [text.get_text() for text in axes.texts]
    for name, place in rows.items():
        rewards = table["reward"][table["algorithm"] == name]
        points = [line.get_xydata() for line in axes.lines if len(line.get_xydata()) == 30]
        (mine,) = [
            each
            for each in points
            if np.all((each[:, 1] > place + 0.2) & (each[:, 1] < place + 0.5))
        ]
        np.testing.assert_array_equal(mine[:, 0], rewards)
        assert f"{rewards.mean():.2f} ± {2 * rewards.std(ddof=1) / np.sqrt(30):.2f}" in texts


@pytest.mark.slow
def test_heat_maps_show_their_tables(seed: int, drawn: list[Figure]) -> None:
    """Each cell's word is that of its task or algorithm and arm."""
    instance, pulls = instance_table(), first_pull_table(seed)
    instance_map(instance, "The instance")
    first_pull_map(pulls, "First pulls")
    rewards = instance["reward"].reshape(16, 20)
    shares = pulls["count"].reshape(6, 20) / 40_000
    for figure, values, written in (
        (drawn[0], rewards, lambda value: f"{value:.2g}" if value else ""),
        (drawn[1], shares, heat_maps._percent),
    ):
        words = [text for text in figure.axes[0].texts if text.get_text() != "▾"]
        shown = {
            tuple(np.floor(text.get_position()).astype(int)): text.get_text() for text in words
        }
        for row, column in np.ndindex(values.shape):
            assert shown.get((column, row), "") == written(values[row, column]), (row, column)


def clashes(figure: Figure) -> list[tuple[str, str]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with style.style():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        unseen = {id(label) for label in beyond_the_limits(figure)}
        found = [t for t in figure.findobj(Text) if isinstance(t, Text) and id(t) not in unseen]
        texts = [t for t in found if t.get_visible() and t.get_text().strip()]
        boxes = [(t.get_text(), Text.get_window_extent(t, canvas.get_renderer())) for t in texts]
    width, height = canvas.get_width_height()
    inside = [(text, box) for text, box in boxes if box.width > 0]
    out = [
        (text, "edge")
        for text, box in inside
        if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height
    ]
    for (first, a), (second, b) in combinations(inside, 2):
        across, down = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if across > 0.5 and down > 0.5:
            out.append((first, second))
    return out


def beyond_the_limits(figure: Figure) -> Iterator[Text]:
    """Labels of ticks outside their axis: Matplotlib keeps them and does not draw them."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if not low <= tick.get_loc() <= high:
                    yield from (tick.label1, tick.label2)


@pytest.mark.slow
def test_one_replicate_and_one_episode_can_be_drawn(seed: int, drawn: list[Figure]) -> None:
    """Without a band where there is no standard error, and without a ± where there is one
    replicate.
    """
    learning_curves(curve_table(GAUSSIAN, seed, replicates=1), "One replicate")
    assert (len(drawn[0].axes[0].lines), len(drawn[0].axes[0].collections)) == (len(GAUSSIAN), 0)
    learning_curves(curve_table(GAUSSIAN, seed, episodes=1), "One episode")
    assert {
        tuple(line.get_xdata()) for line in drawn[1].axes[0].lines if line.get_marker() == "o"
    } == {(50,)}
    performance_boxes(box_table(LINEAR, seed, replicates=1), "One replicate")
    assert not any("±" in text.get_text() for text in drawn[2].axes[0].texts)


def test_algorithms_look_the_same_in_every_figure_and_unlike_each_other() -> None:
    names = [*DISCRETE, "first of ours", "second of ours", "third of ours"]
    shown = looks(names, names[6:])
    assert all(
        (shown[name].colour, shown[name].marker) == (KNOWN[name].colour, KNOWN[name].marker)
        for name in DISCRETE
    )
    assert len({shown[name].colour for name in names}) == len(names)
    assert [name for name in names if shown[name].ours] == names[6:]


def test_shares_are_written_without_a_false_never_or_always() -> None:
    written = [
        heat_maps._percent(share)
        for share in (0.0, 1e-4, 0.0012, 0.0995, 0.25, 0.9949, 0.9951, 0.99999, 1.0)
    ]
    assert written == ["", "<0.1", "0.1", "10", "25", "99", "99.5", "99.9", "100"]


def without(table: Table, column: str) -> Table:
    return {name: values for name, values in table.items() if name != column}


def test_malformed_curves_are_named(seed: int) -> None:
    table = curve_table(LINEAR, seed)
    wrong: list[tuple[object, str]] = [
        ({}, ("curves", "must not be empty")),
        ({"Panel": {}}, ("curves", "algorithm, t0, replicate, episode, average")),
        ([1, 2], ("curves", "must be a table")),
        ({"Panel": table, **table}, ("curves", "must be one table or tables")),
        (without(table, "episode"), ("curves", "episode")),
        ({name: values[:0] for name, values in table.items()}, ("curves", "must not be empty")),
        (table | {"average": table["average"][:-1]}, ("curves", "columns of one length")),
        (
            table | {"average": np.where(table["episode"] == 50, np.nan, 1.0)},
            ("curves['average']", "must be finite"),
        ),
        (
            table | {"average": table["average"].reshape(2, -1)},
            ("curves['average']", "must be a vector"),
        ),
        (table | {"t0": table["t0"].astype(float)}, ("curves['t0']", "must hold")),
        (
            table | {"replicate": table["replicate"] - 1},
            ("curves['replicate']", "must not be"),
        ),
        (table | {"algorithm": table["t0"]}, ("curves['algorithm']", "must hold names")),
    ]
    for each, said in wrong:
        with raises(said):
            learning_curves(each, "Title")  # type: ignore[arg-type]
    for ours in (["OracleTS", "Nobody"], "OracleTS"):
        with raises("ours", "must be a collection of algorithms of"):
            learning_curves(table, "Title", ours=ours)


def test_malformed_test_tables_are_named(seed: int) -> None:
    table = box_table(LINEAR, seed)
    with raises("test", "one t0 for each algorithm, but MetaTS:full"):
        performance_boxes(
            table | {"t0": np.where(table["replicate"] == 0, 0, table["t0"])}, "Title"
        )
    with raises("test", "OracleTS has a replicate twice"):
        performance_boxes(table | {"replicate": table["replicate"] // 2}, "Title")
    with raises("oracle", "must be an algorithm of the table"):
        performance_boxes(table, "Title", oracle="OracleKG")
    with raises("test", "reward"):
        performance_boxes(without(table, "reward"), "Title")


def test_malformed_heat_maps_are_named(seed: int) -> None:
    table, pulls = instance_table(), first_pull_table(seed)
    with raises("instance", "each pair of task and arm once"):
        instance_map({name: values[:-1] for name, values in table.items()}, "Title")
    with raises("instance", "sum to 1"):
        instance_map(table | {"probability": 2 * table["probability"]}, "Title")
    with raises("instance", "one probability"):
        instance_map(
            table | {"probability": np.where(table["arm"] == 0, 1 / 16, table["probability"])},
            "Title",
        )
    with raises("identifying", "must be arms from 0 to 19"):
        instance_map(table, "Title", identifying=[20])
    with raises("first_pulls", "each pair of algorithm and arm once"):
        first_pull_map(pulls | {"arm": np.zeros_like(pulls["arm"])}, "Title")
    with raises("first_pulls", "at least one episode for each algorithm"):
        first_pull_map(
            pulls | {"count": np.where(pulls["algorithm"] == "MisTS", 0, pulls["count"])}, "Title"
        )


def test_logarithmic_axes_are_numbered_plainly(drawn: list[Figure]) -> None:
    """Mathematical text is off, so that powers of ten would be written as their source."""
    pulls = np.array([5, 10, 20, 40, 80])
    shares = {"upper": 0.02, "exact": 0.006, "improved": 0.004, "theorem": 0.003}
    numbers = {name: share * pulls for name, share in shares.items()}
    noise = {"measured": 0.006 * pulls, "std_error": 0.0005 * pulls}
    theory.gaps({"pulls": pulls, **numbers, **noise})
    theory.gaps_over_draws({"k": pulls, **numbers, **noise})
    arms = np.array([4, 4, 8, 8, 16, 16])
    tasks, deltas = 100.0 * arms**2, np.array([0.3, 0.1] * 3)
    theory.tasks_needed(
        {"prior": np.full(6, "Beta"), "arms": arms, "delta": deltas, "tasks": tasks}
        | {"certified": 1e3 * tasks, "rate": tasks}
    )
    bar = Bar("worst case", 0.02, 0.0, 0.3, 0.0, "by hand")
    ladder_figure([bar], 0.01, 0.001, 17.0, "Ladder", "by hand")
    for figure in drawn:
        for axes in figure.axes:
            axes.figure.canvas.draw()
            ticks = [*axes.get_xticklabels(which="both"), *axes.get_yticklabels(which="both")]
            assert any(each.get_text() for each in axes.get_xticklabels())
            assert not [each for each in ticks if "$" in each.get_text()]


def test_small_numbers_of_an_axis_have_no_powers(drawn: list[Figure]) -> None:
    """Beside 0.0001 stands 0.00001, not 1e-05; what is smaller still may be a power."""
    with style.sheet(3.0, 2.0, "Title", "", left=1.0, top=0.5, bottom=0.5) as page:
        axes = page.axes(1.0, 1.5, 2.0)
        axes.set_yscale("log")
        axes.set_yticks([1e-7, 1e-6, 1e-5, 1e-4, 1.0])
        style.number_plainly(axes.yaxis)
    drawn[0].canvas.draw()
    said = [each.get_text() for each in axes.get_yticklabels()]
    assert said == ["1e-07", "0.000001", "0.00001", "0.0001", "1"]
