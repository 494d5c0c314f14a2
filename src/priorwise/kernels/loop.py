"""The compiled loop: what ``priorwise.simulate.loop`` says in NumPy, over tiles of tasks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types

from priorwise.core.hashing import purpose_key
from priorwise.core.streams import Purpose
from priorwise.core.tiles import LANES, FamilyTiles, PolicyTiles
from priorwise.core.trajectories import Block, Columns
from priorwise.core.types import BoolArray, FloatArray
from priorwise.kernels import compiling as kinds
from priorwise.kernels.compiling import INTS, KEYS, ROW, ROWS, F, I, U, caller, entry, inline
from priorwise.kernels.policies import pick
from priorwise.kernels.random import GOLDEN, call_key, mix
from priorwise.kernels.simd import WIDTH, gather, iota, load, maximum, poke, store
from priorwise.kernels.tally import note

# tile functions of a belief that policies call
ASKED = {"draw", "mean", "look", "look_many", "certain", "mean_size"}
ASKED |= {"quantile", "best_after", "best_after_pulls", "draw_each"}
_SIZES = types.Array(I, 2, "C")
_SIGNATURE = types.void(
    # purpose keys, first task, tasks, horizon, pulls of a batch, step from which scores serve it
    KEYS, U, I, I, I, I,
    _SIZES,  # tables of addresses: of the first belief of a tile, and of those that follow it
    ROW, INTS, INTS,  # environment: p, n, sizes
    # beliefs: p and n of each, sizes of all, first task of each, first rows by task or no rows
    ROWS, _SIZES, INTS, INTS, ROWS,
    ROW, INTS,  # policy
    types.Array(types.boolean, 2, "C"),  # available arms (task, arm), or no rows
    # means and squared deviations of each tile's rows, or no rows; total rewards (belief, task),
    # total regrets of the last belief by task
    ROWS, ROWS, ROWS, ROW,
    types.Array(types.int32, 2, "C"), ROWS,  # actions, rewards (step, task), or no rows
    types.Array(F, 3, "C"),  # logged signal (step, entry, task), or no rows
    INTS,  # impossible trajectories, by task
)  # fmt: skip

sample, signal_of, values_of = map(caller, (kinds.SAMPLE, kinds.SIGNAL, kinds.VALUES))
reward_of, start, update = map(caller, (kinds.REWARD, kinds.START, kinds.UPDATE))
act, move = caller(kinds.ACT), caller(kinds.MOVE)


@inline
def _best_available(values, mask, arms, out):
    for g in range(0, LANES, WIDTH):
        best = load(values, g) + load(mask, g)
        for arm in range(1, arms):
            best = maximum(best, load(values, arm * LANES + g) + load(mask, arm * LANES + g))
        store(out, g, best)


@entry(_SIGNATURE)
def run_tiles(
    purposes, first, tasks, horizon, batch, scored, tables,
    ep, en, esize,
    bps, bns, bsize, begins, first_rows,
    pp, pn,
    available, means, squares, totals_out, regrets_out, actions_out, rewards_out, log_out,
    resets_out,
):  # fmt: skip
    """Run ``tasks`` tasks from ``first`` on, in whole tiles, under each of several beliefs; a
    belief may skip the first of them.

    Signals, values and the policy's normals of a tile are kept, step by step, for the beliefs after
    the first. Reports and columns are of tasks that count, and of one belief. Rewards are seen
    after every batch; where nothing is shown, scores of its first pull serve all of it, from the
    step ``scored`` on, 0 for never.
    """
    arms, signal_rows, beliefs = esize[0], esize[2], bps.shape[0]
    slots = horizon if beliefs > 1 else batch
    repeats = scored != 0 and signal_rows == 0
    keys = np.empty((4, LANES), np.uint64)
    environment = np.empty((esize[1], LANES))
    signals = np.empty((slots, max(signal_rows, 1), LANES))
    truths = np.empty((slots if signal_rows > 0 else 1, arms, LANES))
    bests = np.empty((slots if signal_rows > 0 else 1, LANES))
    state = np.zeros((bsize[0], LANES))  # rows that ``start`` leaves alone may keep what is dear
    # what a draw leaves in scratch is kept only where it is used again
    redraws = tables[0, kinds.DRAW_AT] != tables[1, kinds.DRAW_AT]
    scratches = np.empty((slots if redraws else 1, bsize[1], LANES))
    scratch = np.empty((bsize[1], LANES)) if redraws else scratches[0]
    values = np.empty((arms, LANES))
    acc = np.empty((4 * arms + 3, LANES))
    mask = np.zeros((arms, LANES))
    batch_rewards, regrets = np.empty((batch, LANES)), np.empty(LANES)
    chosen, spare = np.empty(LANES), np.empty(LANES)
    batch_actions = np.empty((batch, LANES), np.int64)
    totals = np.empty((2, LANES))
    reported, kept = means.shape[0] > 0, actions_out.shape[0] > 0
    whole = totals_out.shape[1]
    logged = log_out.shape[1]
    moves = tables[0, kinds.MOVE_AT]
    stride = 0 if moves else logged  # a state is logged whatever the action
    environment_keys, reward_keys, policy_keys, world_keys = keys[0], keys[1], keys[2], keys[3]
    for tile in range(whole // LANES):
        offset = tile * LANES
        lanes = min(LANES, tasks - offset)
        for purpose in range(4):
            row = keys[purpose]
            for lane in range(LANES):
                row[lane] = mix(purposes[purpose] + (first + np.uint64(offset + lane)) * GOLDEN)
        if available.shape[0] > 0:
            for arm in range(arms):
                for lane in range(LANES):
                    mask[arm, lane] = 0.0 if available[offset + lane, arm] else -np.inf
        table = tables[0]
        sample(table[kinds.SAMPLE_AT], ep, en, environment_keys, environment)
        if signal_rows == 0:
            values_of(table[kinds.VALUES_AT], ep, en, environment, signals[0], truths[0])
            _best_available(truths[0], mask, arms, bests[0])
        fresh = True
        for belief in range(beliefs):
            if begins[belief] >= offset + LANES:
                continue
            bp, bn, table = bps[belief], bns[belief], tables[0 if fresh else 1]
            totals[:] = 0.0
            start(table[kinds.START_AT], bp, bn, state)
            for row in range(first_rows.shape[0]):
                for g in range(0, LANES, WIDTH):
                    store(state, row * LANES + g, load(first_rows, row * whole + offset + g))
            for step in range(1, horizon + 1):
                since = (step - 1) % batch  # pulls of the batch before this one
                slot = step - 1 if beliefs > 1 else since
                actions, rewards = batch_actions[since], batch_rewards[since]
                of_values = slot if signal_rows > 0 else 0
                signal, truth, best = signals[slot], truths[of_values], bests[of_values]
                draft = scratches[slot if redraws else 0]
                if fresh and signal_rows > 0:
                    if step == 1 or not moves:
                        signal_of(table[kinds.SIGNAL_AT], ep, en, world_keys, step, signal)
                    values_of(table[kinds.VALUES_AT], ep, en, environment, signal, truth)
                    _best_available(truth, mask, arms, best)
                if repeats and since > 0 and step > scored:
                    at = call_key(step, 0)
                    pick(values, arms, policy_keys, at, acc[0], acc[1], actions)
                else:
                    act(
                        table[kinds.ACT_AT], pp, pn, policy_keys, step, table, bp, bn, state,
                        signal, mask, draft, values, acc, actions,
                    )  # fmt: skip
                for g in range(0, LANES, WIDTH):
                    place = load(actions, g) * np.uint64(LANES) + iota() + np.uint64(g)
                    store(chosen, g, gather(truth, place))
                reward_of(
                    table[kinds.REWARD_AT], ep, en, reward_keys, step, environment, chosen, actions,
                    spare, rewards,
                )  # fmt: skip
                for g in range(0, LANES, WIDTH):
                    earned = load(rewards, g)
                    regret = load(best, g) - load(chosen, g)
                    store(regrets, g, regret)
                    store(totals, g, load(totals, g) + earned)
                    store(totals, LANES + g, load(totals, LANES + g) + regret)
                if reported:
                    note(means, squares, tile, step - 1, rewards, 0, lanes)
                    note(means, squares, tile, horizon + step, chosen, 0, lanes)
                    note(means, squares, tile, 2 * horizon + step, regrets, 0, lanes)
                    note(means, squares, tile, 3 * horizon + step, totals, LANES, lanes)
                if kept:
                    place = (step - 1) * whole + offset
                    for lane in range(LANES):
                        poke(actions_out, place + lane, np.int32(actions[lane]))
                    for g in range(0, LANES, WIDTH):
                        store(rewards_out, place + g, load(rewards, g))
                for k in range(logged):
                    for lane in range(LANES):
                        row = actions[lane] * stride + k
                        log_out[step - 1, k, offset + lane] = signal[row, lane]
                if moves:
                    move(moves, ep, en, world_keys, step, environment, actions, signal)
                if step < horizon and since == batch - 1:
                    for k in range(batch):
                        learn = table[kinds.UPDATE_AT if k == since else kinds.COUNT_AT]
                        update(
                            learn, bp, bn, state, signals[slot - since + k], scratch,
                            batch_actions[k], batch_rewards[k],
                        )  # fmt: skip
            if reported:
                note(means, squares, tile, horizon, totals, 0, lanes)
            for g in range(0, LANES, WIDTH):
                store(totals_out, belief * whole + offset + g, load(totals, g))
                store(regrets_out, offset + g, load(totals, LANES + g))
            if bsize[2] >= 0:
                for lane in range(LANES):
                    resets_out[offset + lane] += np.int64(state[bsize[2], lane])
            fresh = False


def run_beliefs(
    environment: FamilyTiles,
    beliefs: Sequence[FamilyTiles],
    policy: PolicyTiles,
    *,
    begins: Sequence[int],
    **block: Any,
) -> FloatArray:
    """Total rewards ``(belief, task)`` of one policy under several beliefs that run alike, from
    each one's first task on; ``block`` says the seed, the first task, the tasks and the horizon.

    What a belief earns is, bit for bit, what it earns alone. Work that does not depend on the
    belief is done once a task.
    """
    run = run_compiled(environment, beliefs, policy, begins=begins, report=False, **block)
    return run.totals


def run_compiled(
    environment: FamilyTiles,
    beliefs: Sequence[FamilyTiles],
    policy: PolicyTiles,
    *,
    seed: int,
    first: int,
    tasks: int,
    horizon: int,
    available: BoolArray | None = None,
    keep: bool = False,
    batch: int = 1,
    begins: Sequence[int] = (0,),
    report: bool = True,
) -> Block:
    """Run a block of tasks: whole tiles, and drop surplus tasks. Total rewards are ``(task,)``, or
    ``(belief, task)`` where nothing else is reported.
    """
    whole, steps = -(-tasks // LANES) * LANES, horizon if keep else 0
    means, squares = np.empty((2, whole // LANES if report else 0, 4 * horizon + 1))
    totals, regrets = np.empty((len(beliefs), whole)), np.empty(whole)
    actions, rewards = np.empty((steps, whole), dtype=np.int32), np.empty((steps, whole))
    moves = environment.move is not None
    logged = (1 if moves else environment.signal_rows // environment.arms) if keep else 0
    log = np.empty((steps, logged, whole))
    resets = np.zeros(whole, dtype=np.int64)
    mask = np.ones((0 if available is None else whole, environment.arms), dtype=np.bool_)
    if available is not None:
        mask[:tasks] = available
    policy = policy.in_batches(batch, horizon)
    try:
        run_tiles(
            np.array([purpose_key(seed, purpose) for purpose in Purpose], dtype=np.uint64),
            np.uint64(first), tasks, horizon, min(batch, horizon), policy.scored,
            *_roles(environment, beliefs, begins, policy, tasks, whole, batch),
            mask, means, squares, totals, regrets, actions, rewards, log, resets,
        )  # fmt: skip
    except MemoryError as error:
        rows = beliefs[0].belief_rows + beliefs[0].scratch_rows
        raise MemoryError(
            f"compiled code found no room for its arrays: arms={environment.arms:,}, "
            f"horizon={horizon:,}, a belief of {rows:,} numbers about each of {LANES} tasks, and "
            "what the policy's draws take; "
            "lower the arms, the horizon, the draws of the policy or the threads"
        ) from error
    columns = None
    if keep:
        signal = log[:, :, :tasks] if logged else None
        columns = Columns(actions[:, :tasks], rewards[:, :tasks], signal)
    # where actions move what is shown, no action is known to be the best
    if moves:
        means, squares = means[:, : horizon + 1].copy(), squares[:, : horizon + 1].copy()
    earned = totals[0, :tasks] if report else totals[:, :tasks]
    lost = None if moves else regrets[:tasks]
    return Block(means, squares, earned, resets[:tasks], columns, regrets=lost)


def run_alike(one: FamilyTiles, other: FamilyTiles) -> bool:
    """Whether two priors differ in their numbers only, and all tasks start and go on alike."""
    if one.move or one.first_rows is not None or other.first_rows is not None:
        return False
    apart = {"p": None, "n": None}
    same = one.p.shape == other.p.shape and one.n.shape == other.n.shape
    return same and vars(one) | apart == vars(other) | apart


def _roles(
    e: FamilyTiles,
    beliefs: Sequence[FamilyTiles],
    begins: Sequence[int],
    policy: PolicyTiles,
    tasks: int,
    whole: int,
    batch: int,
) -> tuple[Any, ...]:
    """Addresses, numbers and sizes of environment, beliefs and policy, as the loop takes them."""
    b = beliefs[0]
    called = {name: getattr(b, name) if name in policy.uses else None for name in ASKED}
    look = called["look"] or called["look_many"]
    table = np.array([
        0 if each is None else each.address for each in (
            e.sample, e.signal, e.values, e.reward, b.start, called["draw"], called["mean"],
            b.update, look, called["certain"], policy.act, called["mean_size"],
            called["quantile"], called["best_after"], called["draw_each"], e.move,
            b.update if batch == 1 else b.count or b.update, called["best_after_pulls"],
        )
    ])  # fmt: skip
    later = table.copy()
    if len(beliefs) > 1 and policy.draws_once and b.redraw is not None:
        later[kinds.DRAW_AT] = b.redraw.address
    given = np.zeros((0, tasks)) if b.first_rows is None else b.first_rows
    first_rows = np.zeros((len(given), whole))
    first_rows[:, :tasks] = given
    return (
        np.stack([table, later]),
        e.p, e.n, np.array([e.arms, e.environment_rows, e.signal_rows]),
        np.stack([each.p for each in beliefs]), np.stack([each.n for each in beliefs]),
        np.array([b.belief_rows, b.scratch_rows, b.resets_row]), np.array(begins, dtype=np.int64),
        first_rows,
        policy.p, policy.n,
    )  # fmt: skip
