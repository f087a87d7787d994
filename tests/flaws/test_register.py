"""What others suffer from, and where it is shown that it does not happen here.

*Pains* are what users of other systems complain of, by the numbers of their list; *flaws* are what earlier
systems of this kind got wrong. Each names a test that would fail if it came back.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PAINS = {
    1: ("flaws/test_shares.py", "test_an_intent_due_in_30_days_with_a_lease_of_30_seconds_is_delivered_once"),
    2: ("worker/test_shares.py", "test_a_hundred_thousand_far_tasks_cost_a_worker_no_memory"),
    3: ("worker/test_death.py", "test_deliveries_of_a_killed_worker_run_again_with_a_higher_number"),
    4: ("worker/test_idle.py", "test_a_stopped_worker_is_an_anomaly_until_it_continues"),
    5: ("e2e/test_server_ticks.py", "test_killed_across_ticks_each_has_exactly_one_intent"),
    6: ("integration/test_schedules.py", "test_ticks_missed_during_the_downtime"),
    7: ("e2e/test_held.py", "test_a_second_process_gets_the_holder_of_the_folder"),
    8: ("unit/engine/schedules/test_calendar.py", "test_moments_around_clock_changes_in_forty_years"),
    9: ("worker/test_functions.py", "test_a_function_of_each_kind_runs_and_knows_its_delivery"),
    10: ("typing/test_typing.py", "test_types_go_through"),
    11: ("integration/test_tasks.py", "test_a_failing_task_is_retried_until_it_succeeds"),
    12: ("contrib/test_sqlalchemy.py", "test_commit_means_scheduled_and_rollback_means_not"),
    13: ("worker/test_death.py", "TestDraining"),
    14: ("worker/test_pains.py", "test_pain_14_a_cancel_is_remembered_with_no_worker_alive"),
    15: (
        "worker/test_groups.py",
        "test_pain_15_the_callback_runs_once_and_after_all_though_workers_are_killed",
    ),
    16: (
        "worker/test_pains.py",
        "test_pain_16_what_is_done_stays_done_when_its_worker_dies",
    ),
    17: ("worker/test_death.py", "test_a_function_that_blocks_the_loop_keeps_its_lease"),
    18: ("worker/test_shares.py", "test_a_rate_by_key_holds_over_four_worker_processes"),
    19: (
        "worker/test_shares.py",
        "test_a_tenant_that_floods_does_not_delay_another",
    ),
    20: ("http/test_restart.py", "test_every_state_is_the_same_after_it"),
    21: ("http/test_claims.py", "test_a_key_is_free_at_once_when_its_holder_has_ended"),
}
FLAWS = {
    8: ("worker/test_pains.py", "test_flaw_08_without_workers_an_intent_waits_and_goes_to_one_worker"),
    16: (
        "flaws/test_flaws_durability.py",
        "test_flaw_16_what_was_handed_to_a_handler_that_died_is_handed_out_again",
    ),
    17: ("flaws/test_flaws.py", "test_flaw_17_a_failed_handler_leaves_no_lock_behind"),
    18: (
        "worker/test_pains.py",
        "test_flaw_18_two_workers_never_run_one_delivery_and_a_dead_one_is_followed",
    ),
    19: (
        "worker/test_pains.py",
        "test_flaw_19_an_error_of_a_function_is_not_a_connection_error_and_obeys_its_retry_limit",
    ),
    20: ("worker/test_pains.py", "test_flaw_20_an_unreachable_server_is_an_error_and_not_an_endless_wait"),
    21: ("flaws/test_flaws.py", "test_flaw_21_a_long_job_beats_and_a_silent_one_counts"),
    22: ("worker/test_pains.py", "test_flaw_22_a_missing_function_is_never_a_silent_success"),
    23: ("flaws/test_shares.py", "test_a_flood_of_high_cannot_starve_low"),
}


@pytest.mark.parametrize("place", [*PAINS.values(), *FLAWS.values()], ids=lambda place: place[1])
def test_every_named_test_exists(place):
    path, name = place
    found = ast.parse((ROOT / "tests" / path).read_text()).body
    names = [
        node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    assert name in names, f"{path} has no {name}"
