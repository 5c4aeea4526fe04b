"""`msg2 label`: a draft of the step labels where there are none or few."""

from pathlib import Path
from typing import Annotated

from msg2 import labelling
from msg2.cli import console, flags
from msg2.cli.features import Captions, PhraseModel, SpeechModel, VideoJobs
from msg2.cli.flags import argument, option, output_option, switch
from msg2.errors import require
from msg2.files import write_whole
from msg2.formats.step_table import to_csv

_OPTIONS = labelling.LabelOptions()


def label(
    output: Annotated[Path, output_option("FILE", "The table (.csv); without steps or labels also .txt.")],
    data: Annotated[
        Path | None, argument("VIDEOS", "A folder of videos, captions (.vtt, .srt) or transcripts (.json).")
    ] = None,
    steps: Annotated[Path | None, option("FILE", "Names of the steps, a line each in their order, or a graph.")] = None,
    labels: Annotated[Path | None, option("DATA", "The labels of some of the videos.")] = None,
    from_scores: Annotated[
        Path | None, option("FOLDER", "Instead of VIDEOS: probabilities of steps in frames (.npy, .npz, .csv).")
    ] = None,
    graph: Annotated[Path | None, option("GRAPH", "For --from-scores: the order; else learned from --labels.")] = None,
    fps: Annotated[float | None, option("N", "Frames per second of scores without times.")] = None,
    text_encoder: Annotated[str, option("words|PATH", "Hashed words or a sentence encoder: folder or name.")] = "words",
    features: Annotated[Path | None, option("STORE", "The features of the videos: frames join what is said.")] = None,
    captions: Captions = None,
    speech: SpeechModel = None,
    phrases: PhraseModel = None,
    llm: flags.LlmUrl = None,
    llm_model: flags.LlmModel = None,
    llm_dry_run: flags.LlmDryRun = False,
    task: Annotated[str | None, option("NAME", "Name of the task, or one of those in --labels.")] = None,
    any_order: Annotated[bool, switch("--any-order", "The steps are listed in any order.")] = _OPTIONS.any_order,
    presence: Annotated[float, option("P", "Draft steps of this probability.", min=0, max=1)] = _OPTIONS.presence,
    discovered: Annotated[int, option("N", "Steps to propose where none are named.", min=1)] = _OPTIONS.discovered,
    jobs: VideoJobs = 1,
    engine: flags.EngineName = "local",
) -> None:
    """A draft of the step labels of videos, from what is said in them and the names of the steps, or a few labels.

    With neither, names of steps are proposed: a list to edit. What is labelled stays as it is; drafts have the source
    `draft` and the probability that they are right as their confidence. Or from a recogniser: what it makes of every
    frame, and a graph, tell when each step began and ended.

    Examples: `msg2 label videos --steps steps.txt -o draft.csv`,
    `msg2 label --from-scores probabilities --graph toast.json --fps 5 -o draft.csv`
    """
    flags.usage_error_if((data is None) == (from_scores is None), "give either VIDEOS or --from-scores")
    if from_scores is None:
        flags.refuse("--from-scores", graph=graph, fps=fps)
    else:
        flags.refuse("VIDEOS", steps=steps, features=features, captions=captions, speech=speech, phrases=phrases)
    flags.usage_error_if(output.suffix.lower() not in (".csv", ".txt"), f"-o {output} must end in .csv or .txt")
    flags.refuse_clashes([output], labels, steps, graph)
    client = flags.make_client(llm, llm_model, llm_dry_run)
    options = labelling.LabelOptions(any_order=any_order, presence=presence, discovered=discovered)
    with console.progress_bar("listening" if from_scores is None else "grounding") as show:
        result = labelling.label(
            data, steps, labels, scores=from_scores, graph=graph, fps=fps, task=task, text_encoder=text_encoder,
            features=features, captions=captions, speech_model=speech, phrase_model=phrases, llm=client,
            options=options, jobs=jobs, engine=engine, progress=show,
        )  # fmt: skip
    if llm_dry_run:
        console.print_line(f"would take {result.notes[-1]}")
        return
    if output.suffix.lower() == ".txt":
        require(result.discovered, "a list of steps is written where none are known", where=output, hint="write a .csv")
        write_whole(output, "".join(f"{step.name}\n" for step in result.discovered))
    else:
        write_whole(output, to_csv([result.task]))
    _print_result(result, data, output)


def _print_result(result: labelling.LabelResult, data: Path | None, output: Path) -> None:
    if result.discovered:
        rows = [(step.name, step.videos, ", ".join(step.phrases[1:4])) for step in result.discovered]
        console.print_table(["step found", "videos", "also said as"], rows)
        console.print_line("")
    drafted = sum(any(s.source in ("draft", "llm") for s in video.segments) for video in result.task)
    console.print_line(f"from      {result.way}")
    console.print_line(f"drafts    {result.drafted} labels of {len(result.steps)} steps in {drafted} videos")
    if result.calibration is not None:
        error = console.format_percent(result.calibration.error)
        console.print_line(f"checked   confidences are off by {error} % on {result.calibration.videos} held-out videos")
    console.print_line(*(f"note      {note}" for note in result.notes), f"written   {output}")
    if output.suffix.lower() == ".txt":
        console.print_line(f"next      edit it, then: msg2 label {data} --steps {output} -o draft.csv")
    else:
        least = f" --draft-confidence {result.graph_confidence:g}" if result.graph_confidence else ""
        correct = f"msg2 serve {output}" if data is None else f"msg2 serve {data} {output}"
        learn = f"msg2 infer {output}{least} -o graph.json"
        console.print_line(f"next      {learn}, or correct it: {correct}")
