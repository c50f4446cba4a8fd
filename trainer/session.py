"""One run from its file to its result, on one of its ranks."""

from __future__ import annotations

import fcntl
import logging
import sys
import traceback
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from trainer import card, checkpoint, durable, examples, model, prepare, result, resume, run_file
from trainer.arguments import arguments, kind
from trainer.call import Call
from trainer.callbacks import Detect, StopTogether, TakeMemory, Tell
from trainer.checkpoint import Sealed
from trainer.checkpoints import Checkpoints
from trainer.device import Device, Ranks, device
from trainer.engines import Engine, engine
from trainer.errors import Problem, Refused, Stopped, StorageFailed, TrainerError
from trainer.flops import Work
from trainer.meters import Meters
from trainer.prepare import Prepared
from trainer.result import Result
from trainer.stop import Stop
from trainer.telemetry import Telemetry
from trainer.together import Together, finish
from trainer.together import start as join
from trainer.tokenised import Tokenised
from trainer.verdicts import verdict

log = logging.getLogger("trainer")


class Session:
    """`run` gives the exit status; whatever happens, rank 0 seals a result."""

    def __init__(self, call: Call, ranks: Ranks, began: float) -> None:
        self.call, self.ranks = call, ranks
        self.result = Result("failed", started=began)
        self.stop = Stop(call.stop_file)
        self.trainer: Any = None
        self._others = False  # whether what is below `checkpoints` is another run's that is at work

    def run(self) -> int:
        """Train; the exit status."""
        status = 0
        try:
            self._train()
        except TrainerError as error:
            status = error.exit_code
            self._let_seal(error)
            self._failed("refused" if isinstance(error, Refused) else "failed", error.verdict, error.problems)
        except Exception as error:  # noqa: BLE001 - ours or a library's: told in one line, with everything in the rank's log
            status = 1
            traceback.print_exc(file=sys.stderr)
            self._failed("failed", verdict(error), (Problem("", f"{type(error).__name__}: {str(error).strip() or 'no message'}"),))
        self._seal()
        if status == 0:
            finish()
        return status

    def _let_seal(self, error: TrainerError) -> None:
        """A detector stops all ranks at once: what they saved before is worth waiting for."""
        if isinstance(error, Stopped) and self.trainer is not None:
            try:
                self.trainer.parts.checkpoints.wait()
            except StorageFailed as other:
                log.error("%s", other)

    def _forget_result(self) -> None:
        """What an earlier run came to is not this one's."""
        path = self.call.checkpoints / result.NAME
        if path.exists():
            path.replace(path.with_name("result.previous.json"))

    def _failed(self, status: result.Status, why: str, problems: tuple[Problem, ...]) -> None:
        self.result.status, self.result.verdict = status, why
        self.result.problems = [str(problem) for problem in problems]
        for problem in problems:
            log.error("%s", problem)

    def _seal(self) -> None:
        if self.trainer is not None:
            self.result.step, self.result.max_steps = self.trainer.state.global_step, self.trainer.state.max_steps
        if self.ranks.rank == 0:
            self._ask_others()
            found = checkpoint.steps(self.call.checkpoints)
            self.result.checkpoint = str(checkpoint.named(self.call.checkpoints, found[0])) if found else ""
            path = self._written()
            log.info("%s%s: %s", self.result.status, f" ({self.result.verdict})" if self.result.verdict else "", path)
        elif self.result.status in ("failed", "refused"):
            told = {"verdict": self.result.verdict, "problems": self.result.problems}
            durable.write(self._failure_of(self.ranks.rank), durable.sealed(told))

    def _failure_of(self, rank: int) -> Path:
        return self.call.logs / f"failure-rank-{rank}.json"

    def _ask_others(self) -> None:
        """A rank that lost the others says why they went, where they could say it."""
        if self.result.verdict != "network":
            return
        for path in (path for path in map(self._failure_of, range(1, self.ranks.world)) if path.exists()):
            told = durable.unsealed(path.read_text(encoding="utf-8"))
            if told and told["verdict"] != "network":
                self.result.verdict = told["verdict"]
                self.result.problems = [f"{path.stem.removeprefix('failure-')}: {problem}" for problem in told["problems"]]
                return

    def _written(self) -> Path:
        """Beside the checkpoints; beside the logs where that disk takes nothing more."""
        if self._others:
            return result.write(self.call.logs / "refused", self.result)
        try:
            return result.write(self.call.checkpoints, self.result)
        except OSError as error:
            log.error("result.json cannot be written to %s: %s", self.call.checkpoints, error.strerror)
            return result.write(self.call.logs, self.result)

    # -- training

    def _train(self) -> None:
        self._failure_of(self.ranks.rank).unlink(missing_ok=True)
        run, document = run_file.load(self.call.run)
        here = device(self.ranks.local)
        together = join(self.ranks, here, self.call.patience)
        self.stop.listen()
        data = together.first(lambda: prepare.look_at_data(self.call, run))
        found = prepare.prepare(self.call, run, document, here, together.world, kind(run.objective.type), lambda: data)
        if warning := prepare.refuse_what_cannot_fit(found):
            log.warning("%s", warning)
        for setting in found.resolved.settings:
            log.info("%s = %s  (%s)", setting.name, setting.value, setting.origin)
        chosen = engine(run, here, together)
        args = arguments(self.call, found.resolved, chosen, here, run.objective.type)
        about = self._about(found, together.world, here)
        sealed: Sealed | None = together.first(lambda: self._resumed(chosen, about))
        changed = resume.hold(sealed, about["identity"], chosen) if sealed else None
        self._say_resumed(sealed, changed, about)
        self.trainer = self._assemble(found, chosen, args, about, changed)
        outcome = self.trainer.train(resume_from_checkpoint=str(sealed.path) if sealed else None)
        self._finish(found, about, dict(outcome.metrics), together)

    def _resumed(self, chosen: Engine, about: dict[str, Any]) -> Sealed | None:
        self._alone()
        sealed = resume.choose(self.call.checkpoints, self.call.resume)
        if sealed is not None:
            resume.hold(sealed, about["identity"], chosen)
        checkpoint.sweep(self.call.checkpoints)
        return sealed

    def _alone(self) -> None:
        """One run at a time writes these checkpoints; the lock goes with the process."""
        self.call.checkpoints.mkdir(parents=True, exist_ok=True)
        self._lock = (self.call.checkpoints / ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            what = "another run writes its checkpoints there: wait for it, or give this one another --name"
            self._others = True
            raise Refused(Problem(str(self.call.checkpoints), what)) from error
        self._forget_result()

    def _say_resumed(self, sealed: Sealed | None, changed: int | None, about: dict[str, Any]) -> None:
        if sealed is None:
            log.info("begins at step 0")
            return
        log.info("resumes at step %d, from %s", sealed.step, sealed.path)
        if changed is not None:
            log.warning(
                "it was saved by %d ranks, here are %d: same rows and optimizer, other random numbers", changed, self.ranks.world
            )
        if sealed.about.get("environment") != about["environment"]:
            log.warning("it was saved by other versions of the libraries: the same bits are not promised")

    def _about(self, found: Prepared, world: int, here: Device) -> dict[str, Any]:
        assert found.data is not None
        installed = sorted(f"{d.metadata['Name']}=={d.version}" for d in distributions())
        return {
            "identity": resume.identity(found.run, found.resolved, found.plan.identity, found.data.digest, world),
            "world": world,
            "device": here.name,
            "model_path": str(found.plan.path),
            "rows": [found.data.train_rows, found.data.validation_rows],
            "environment": durable.digest_of(installed),
            "versions": model.versions(),
            "commit": self.call.commit,
            "stack": self.call.stack,
            "settings": {s.name: [str(s.value), s.origin] for s in found.resolved.settings},
        }

    def _assemble(self, found: Prepared, chosen: Engine, args: Any, about: dict[str, Any], changed: int | None) -> Any:
        from transformers import set_seed

        from trainer.loop import DpoLoop, Parts, SftLoop

        run, call, together = found.run, self.call, chosen.together
        assert found.data is not None
        training, validation = self._datasets(found.data, together)
        width = prepare.width(run, chosen.device)
        set_seed(args.seed)  # every rank makes the same adapters
        weights = model.load(found.plan, width)
        work = Work(found.plan.shape.parameters, found.plan.shape.layers, found.plan.attention, run.method.type == "lora")
        meters = Meters(work, chosen.device.name, run.max_length)
        telemetry = Telemetry(call.logs, call.name, together.rank, self._port(), call.metrics_address)
        kept = Checkpoints(call.checkpoints, together, together.beside(), about, run.save_total_limit, call.keep_every)
        detect = Detect(run, together, meters)
        kept.healthy = lambda: model.finite(self.trainer.model)
        kept.on_held, kept.on_sealed = meters.away, telemetry.saved
        self.stopper, self.telemetry, self.detect = StopTogether(self.stop, together), telemetry, detect
        given: dict[str, Any] = {
            "model": weights,
            "args": args,
            "train_dataset": training,
            "eval_dataset": validation,
            "processing_class": found.plan.tokenizer,
            "callbacks": [self.stopper, detect, Tell(telemetry, meters), TakeMemory(lambda: chosen.ahead(self.trainer))],
            "peft_config": model.adapter(run.method) if run.method.type == "lora" else None,
        }
        parts = Parts(chosen, kept, meters, Tokenised(call.tokens, found.data.digest, together), changed)
        if run.objective.type == "sft":
            return SftLoop(parts, **given)
        if run.objective.reference:
            given["ref_model"] = model.load(found.plan, width, Path(run.objective.reference))
        return DpoLoop(parts, **given)

    def _port(self) -> int:
        return self.call.metrics_port + self.ranks.local if self.call.metrics_port else 0

    def _datasets(self, data: examples.Data, together: Together) -> tuple[Any, Any]:
        """Rank 0 makes them, the others then find them made."""
        if together.rank == 0:
            made = examples.datasets(data, self.call.cache)
            together.barrier()
            return made
        together.barrier()
        return examples.datasets(data, self.call.cache)

    def _finish(self, found: Prepared, about: dict[str, Any], metrics: dict[str, Any], together: Together) -> None:
        state = self.trainer.state
        self.result.proof = self.trainer.parts.proof.data()
        self.result.speed = self.trainer.parts.speed
        self.result.run = {name: about[name] for name in ("identity", "environment", "versions", "commit", "stack")}
        evaluated = next((dict(entry) for entry in reversed(state.log_history) if "eval_loss" in entry), {})
        self.result.metrics = {**metrics, **{k: v for k, v in evaluated.items() if k.startswith("eval_")}}
        if state.best_global_step:
            self.result.metrics["best_step"] = state.best_global_step
        if self.detect.skipped:
            self.result.metrics["skipped_steps"] = self.detect.skipped
        if self.stopper.reason:
            self.result.status = "preempted"
            if together.rank == 0:
                self.stop.done()
        else:
            about = {**about, "step": state.global_step, "metrics": self.result.metrics}
            self.result.output = str(card.publish(self.trainer, self.call, found.run, found.plan, about, together))
            self.result.status = "succeeded"
        self.telemetry.close()
