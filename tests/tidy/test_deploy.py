"""The files of deploy/ say what the code says: metrics, ports, folders, times."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import yaml

from duetime import limits
from duetime.api.resources.admin import Admin
from duetime.api.resources.admin_routes import admin_routes
from duetime.api.resources.insight import InsightRoutes
from duetime.cli import main
from duetime.insight.metric_table import METRICS
from duetime.insight.rules import RULES
from duetime.insight.worker_metrics import WORKER_METRICS
from duetime.settings import DataSettings, EngineSettings
from duetime.wire.autoscale import Autoscale
from tests.tidy import promql
from tests.tidy.source import ROOT, read
from tools import dashboard

DEPLOY = ROOT / "deploy"
DOCKERFILE = read(DEPLOY / "Dockerfile")
COMPOSE = yaml.safe_load(read(DEPLOY / "compose.yaml"))
ALERTS: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load(read(DEPLOY / "prometheus/rules.yml"))["groups"]
    for rule in group["rules"]
]
SERVICE = re.findall(r"^(\w+)=(.*)$", read(DEPLOY / "systemd/duetime.service"), re.MULTILINE)
DRAIN_S = EngineSettings().drain_ms / 1000


def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read(DEPLOY / "grafana/dashboard.json"))
    return found


def drawn() -> list[str]:
    return [target["expr"] for panel in board()["panels"] for target in panel.get("targets", [])]


# Metrics.


def test_the_dashboard_is_current():
    assert read(dashboard.FILE) == dashboard.text(), "run make docs"
    assert drawn() == dashboard.expressions()


@pytest.mark.parametrize("expression", drawn())
def test_the_dashboard_asks_for_what_there_is(expression):
    assert promql.wrong(expression) == []


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_asks_for_what_there_is(alert):
    assert promql.wrong(alert["expr"]) == []


def test_the_dashboard_shows_every_metric():
    seen = set().union(*(promql.asked(expression).metrics for expression in drawn()))
    shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name in seen}
    assert {spec.name for spec in (*METRICS, *WORKER_METRICS)} - shown == set()


def test_panels_do_not_lie_on_each_other():
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in board()["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < dashboard.COLUMNS


# What the server says of itself but no metric shows: hosts, pauses and refused connections are for /health.
NOT_ALERTED = {"MEMORY_HIGH", "FILES_SHORT", "TOKENS_UNREADABLE", "BREAKER_OPEN", "PAUSED"}


def test_an_alert_for_every_anomaly():
    assert {alert["labels"]["anomaly"] for alert in ALERTS} == {rule.code for rule in RULES} - NOT_ALERTED


def test_every_alert_says_what_to_do():
    for alert in ALERTS:
        assert alert["labels"]["severity"] in ("warning", "critical")
        assert alert["annotations"]["summary"] and alert["annotations"]["description"]


def test_the_bounds_of_the_tiers_are_theirs():
    late = [alert for alert in ALERTS if alert["alert"] == "DuetimeLate"]
    found = {alert["labels"]["tier"]: float(alert["expr"].rpartition(">")[2]) * 1000 for alert in late}
    assert found == dict(zip(limits.TIER_NAMES, limits.TIER_WINDOW_MS, strict=True))
    assert all(f'tier="{alert["labels"]["tier"]}"' in alert["expr"] for alert in late)


def test_thresholds_are_the_servers_own():
    by_name = {alert["alert"]: alert["expr"] for alert in ALERTS}
    assert str(limits.DISK_RESERVE_BYTES) in by_name["DuetimeDiskFull"]
    assert f"4 * {limits.DISK_RESERVE_BYTES}" in by_name["DuetimeDiskLow"]
    assert str(limits.LOG_HISTORY_BYTES) in by_name["DuetimeCheckpointLag"]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("rate(duetime_lateness_seconds_bucket[5m])", []),
        ("up == 0 unless on (instance) duetime_epoch offset 5m", []),
        ("duetime_lateness_seconds", ["there is no metric duetime_lateness_seconds"]),
        ("sum by (tier) (rate(duetime_nothing_total[5m]))", ["there is no metric duetime_nothing_total",
                                                             "nothing has the label tier"]),
        ('duetime_epoch{tier="FAST"}', ["duetime_epoch has no label tier"]),
        ("1 + 1", ["it asks for no metric"]),
    ],
)  # fmt: skip
def test_a_wrong_expression_is_noticed(expression, said):
    assert promql.wrong(expression) == said


@pytest.mark.service
def test_promtool_agrees(promtool, tmp_path):
    """Somebody else's parser, and the alerts fire when they should."""
    records = [
        {"record": f"panel:{number}", "expr": each.replace("$__rate_interval", "5m")}
        for number, each in enumerate(drawn())
    ]
    panels = tmp_path / "panels.yml"
    panels.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": records}]}))
    folder = DEPLOY / "prometheus"
    run(promtool, "check", "rules", str(panels))
    run(promtool, "check", "rules", str(folder / "rules.yml"))
    run(promtool, "check", "config", "--syntax-only", str(folder / "prometheus.yml"))
    run(promtool, "test", "rules", str(folder / "rules_test.yml"))


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# Autoscaling.


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(read(DEPLOY / "kubernetes" / name)))


def test_keda_asks_for_a_field_that_is_there():
    secret, scaled = documents("keda.yaml")
    assert [secret["kind"], scaled["kind"]] == ["TriggerAuthentication", "ScaledObject"]
    [trigger] = scaled["spec"]["triggers"]
    assert trigger["authenticationRef"]["name"] == secret["metadata"]["name"]
    metadata = trigger["metadata"]
    address = urlsplit(metadata["url"])
    assert address.port == limits.HTTP_PORT
    none: Any = None
    routes = admin_routes(Admin(none), InsightRoutes(none, none, none))
    [route] = [each for each in routes if each.path == address.path]
    assert set(parse_qs(address.query)) <= {each.name for each in route.parameters}
    whole, place, field = metadata["valueLocation"].split(".")
    _, shown = msgspec.json.schema_components([Autoscale])
    assert whole in shown["Autoscale"]["properties"] and place == "0"
    assert shown["QueueSignal"]["properties"][field]["type"] in ("integer", "number")


def test_the_pod_autoscaler_asks_for_a_metric_that_is_there():
    [scaler] = documents("hpa.yaml")
    assert scaler["kind"] == "HorizontalPodAutoscaler"
    [metric] = [each["external"]["metric"] for each in scaler["spec"]["metrics"]]
    labels = {spec.name: set(spec.labels) for spec in METRICS}
    assert set(metric["selector"]["matchLabels"]) <= labels[metric["name"]]
    named = set(re.findall(r"duetime_\w+", read(DEPLOY / "kubernetes/hpa.yaml")))
    assert named <= set(labels)


# Ports, folders, times.


def test_the_image_is_what_the_docs_say():
    assert f"EXPOSE {limits.HTTP_PORT} {limits.GRPC_PORT}" in DOCKERFILE
    assert f"DUETIME_URL=http://127.0.0.1:{limits.HTTP_PORT}" in DOCKERFILE
    folder = re.search(r"DUETIME_DATA__DIR=(\S+)", DOCKERFILE)
    assert folder and f"VOLUME {folder[1]}\n" in DOCKERFILE
    assert DOCKERFILE.index("\nUSER duetime") < DOCKERFILE.index("\nCMD"), "it does not run as root"
    assert "--insecure" not in DOCKERFILE + read(DEPLOY / "compose.yaml")


def test_the_image_runs_commands_that_exist():
    lists: list[list[str]] = [json.loads(each) for each in re.findall(r"CMD (\[.*\])", DOCKERFILE)]
    assert len(lists) == 2
    for program, command, *_ in lists:
        assert program == "duetime" and command in main.COMMANDS


def test_everything_the_image_copies_is_let_through():
    let_through = set(re.findall(r"^!(\S+)", read(DEPLOY / "Dockerfile.dockerignore"), re.MULTILINE))
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert names == let_through and all((ROOT / name).exists() for name in names)


def test_every_file_of_compose_is_there():
    for name, service in COMPOSE["services"].items():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            known = (DEPLOY / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
            assert known, f"{name} mounts {source}"
        for port in service["ports"]:
            assert port.startswith("127.0.0.1:"), f"{name} can be reached from other machines"
    build = COMPOSE["services"]["duetime"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Dockerfile"


def test_prometheus_asks_the_server_of_compose():
    config = yaml.safe_load(read(DEPLOY / "prometheus/prometheus.yml"))
    [job] = config["scrape_configs"]
    assert job["job_name"] == "duetime" and job["static_configs"] == [
        {"targets": [f"duetime:{limits.HTTP_PORT}"]}
    ]
    secret = Path(job["authorization"]["credentials_file"])
    assert (
        str(secret.parent) == "/run/secrets" and secret.name in COMPOSE["services"]["prometheus"]["secrets"]
    )
    assert config["rule_files"] == ["rules.yml"]


def test_grafana_finds_its_dashboard():
    provider = yaml.safe_load(read(DEPLOY / "grafana/provisioning/dashboards/duetime.yml"))["providers"][0]
    mounts = [mount.split(":")[1] for mount in COMPOSE["services"]["grafana"]["volumes"]]
    assert f"{provider['options']['path']}/duetime.json" in mounts
    source = yaml.safe_load(read(DEPLOY / "grafana/provisioning/datasources/prometheus.yml"))["datasources"][
        0
    ]
    assert source["type"] == "prometheus" and source["url"] == "http://prometheus:9090"


def test_a_stop_has_time_to_drain():
    assert float(COMPOSE["services"]["duetime"]["stop_grace_period"].removesuffix("s")) > DRAIN_S
    assert float(dict(SERVICE)["TimeoutStopSec"]) > DRAIN_S
    shown = re.search(r"--stop-timeout (\d+)", DOCKERFILE)
    assert shown and float(shown[1]) > DRAIN_S


def test_the_service_may_do_no_more_than_it_must():
    service = dict(SERVICE)
    assert service["User"] == "duetime" and service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "yes" and service["CapabilityBoundingSet"] == ""
    assert service["Restart"] == "on-failure"
    never = {int(code) for code in service["RestartPreventExitStatus"].split()}
    assert never == {main.EXIT_USAGE, main.EXIT_DAMAGED, main.EXIT_UNUSABLE}
    assert service["StateDirectory"] in service["Environment"]


def test_secrets_are_not_committed():
    ignored = read(ROOT / ".gitignore").splitlines()
    assert f"deploy/{COMPOSE['secrets']['prometheus-token']['file'].removeprefix('./')}" in ignored
    assert "deploy/.env" in ignored and f"{DataSettings().dir}/" in ignored


def test_operations_say_where_to_look_for_every_anomaly():
    rows = re.findall(r"^\| (`[A-Z_]+`.*?) \|", read(ROOT / "docs/operations.md"), re.MULTILINE)
    named = {code for row in rows for code in re.findall(r"`([A-Z_]+)`", row)}
    assert named == {rule.code for rule in RULES}


def test_operations_name_alert_files_that_exist():
    for name in re.findall(r"`(deploy/[\w./-]+)`", read(ROOT / "docs/operations.md")):
        assert (ROOT / name).exists(), name
