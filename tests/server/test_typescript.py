"""The schema of the API is as exact as a program needs: types for TypeScript are made from it, and checked."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

PACKAGES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3")
OFFLINE = re.compile(r"\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH)\b")
PROGRAM = """
import createClient from "openapi-fetch";
import type { components, paths } from "./api";

type Schemas = components["schemas"];
const app = createClient<paths>({ baseUrl: "http://127.0.0.1:8765", headers: { Authorization: "Bearer …" } });

export async function follow(graph: string, warn: (text: string, probability: number) => void): Promise<string[]> {
  const opened = await app.POST("/api/runs", {
    body: { graph, data: null, absent: "unknown", alarm_cost: 2, window: 10, confusion: { whisk: { dip: 9, "": 1 } } },
  });
  if (opened.error) throw new Error(opened.error.error + (opened.error.hint ?? ""));
  const path = { id: opened.data.id };
  const told = await app.POST("/api/runs/{id}/events", { params: { path }, body: { saw: { whisk: 0.7 }, at: 3 } });
  for (const finding of told.data?.report?.findings ?? []) warn(finding.kind, finding.probability);
  const asked = await app.POST("/api/runs/{id}/events", { params: { path }, body: { plan: "fry", k: 2 } });
  const plan: string[] = asked.data?.plans?.[0]?.steps ?? [];
  const taken = await app.POST("/api/runs/{id}/graph", { params: { path }, body: { graph } });
  const dropped: string[] = (taken.data?.dropped ?? []).flatMap((entry) => Object.keys(entry.seen));
  const seconds: number | undefined = asked.data?.next[0]?.seconds?.median;
  const left: string | undefined = asked.data?.time_left?.reason;
  return [...plan, ...dropped, `${seconds} ${left}`];
}

export function listen(socket: WebSocket, warn: (alarm: Schemas["Alarm"]) => void): void {
  const send = (event: Schemas["ObserveEvent"] | Schemas["UndoEvent"]) => socket.send(JSON.stringify(event));
  socket.onmessage = ({ data }: MessageEvent<string>) => {
    const answer: Schemas["RunAnswer"] | Schemas["ErrorResponse"] = JSON.parse(data);
    if ("error" in answer) return send({ undo: true });
    answer.alarms.filter((alarm) => alarm.kind === "need").forEach(warn);
    const unseen: [string, number][] = Object.entries(answer.inferred);
    send({ observe: { whisk: 0.9 }, at: unseen.length });
  };
}

export async function wrong(id: string, answer: Schemas["RunAnswer"], run: Schemas["RunResponse"]): Promise<void> {
  const params = { path: { id } };
  await app.POST("/api/runs/{id}/events", { params, body: { did: 1 } }); // wrong
  const event: Schemas["DidEvent"] = { did: "whisk", when: 3 }; // wrong
  await app.POST("/api/runs/{id}/event", { params, body: event }); // wrong
  await app.POST("/api/runs", { body: { graph: id, confusion: [[1, 0]] } }); // wrong
  const text: string = answer.time_left.reason; // wrong
  const seconds: number = answer.next[0].seconds; // wrong
  if (answer.alarms[0].kind === "premature") throw new Error(text); // wrong
  answer.report.mistake; // wrong
  answer.plans?.[0].reasons; // wrong
  run.log[0].report?.alarm; // wrong
  run.answers.done; // wrong
}
"""
PAGE = (Path(__file__).parents[2] / "docs/live-runs.md").read_text(encoding="utf-8")
DECLARED = """
declare const graph: string, run: string, token: string;
declare const camera: { onframe: (probabilities: Record<string, number>, at: number) => void };
declare function show(next: unknown[], alarms: unknown[]): void;
"""
OPTIONS = {"strict": True, "noEmit": True, "skipLibCheck": True, "module": "preserve", "target": "es2022"}


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_a_program_in_typescript_is_checked_by_the_schema(shared_client: TestClient, tmp_path: Path) -> None:
    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)

    installed = run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES)
    if installed.returncode and (unreachable := OFFLINE.search(installed.stderr)):
        pytest.skip(f"the registry of npm cannot be reached: {unreachable[0]}")
    assert installed.returncode == 0, installed.stderr
    (tmp_path / "api.json").write_text(shared_client.get("/api/openapi.json").text)
    (tmp_path / "program.ts").write_text(PROGRAM)
    examples = re.findall(r"^```[jt]s\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    (tmp_path / "page.ts").write_text(DECLARED + "".join(examples))
    (tmp_path / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": OPTIONS, "files": ["program.ts", "page.ts"]})
    )
    generated = run("node_modules/.bin/openapi-typescript", "api.json", "-o", "api.d.ts")
    assert generated.returncode == 0, generated.stderr
    checked = run("node_modules/.bin/tsc", "-p", ".")
    errors = {int(line) for line in re.findall(r"^program\.ts\((\d+),", checked.stdout, re.MULTILINE)}
    marked = {number for number, line in enumerate(PROGRAM.splitlines(), start=1) if line.endswith("// wrong")}
    assert errors == marked, checked.stdout
    assert "page.ts" not in checked.stdout, checked.stdout
    assert len(marked) == 11
