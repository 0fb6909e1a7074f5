package submit

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
)

// checkpointSettings are the settings of a checkpoint block.
var checkpointSettings = []string{"enabled", "every", "on_vacate", "before_walltime", "method", "signal",
	"exit_code", "files"}

// minInterval is the shortest time between two checkpoints. Each freezes the task for a
// moment and transfers all of its memory.
const minInterval = 10 * time.Second

const intervalHint = "Write a length of time (every = \"30m\"), \"auto\" (the machine chooses), or \"never\" (only " +
	"when the task has to leave its machine, and when you ask)."

// readCheckpoint reads the checkpoint block. It says whether and how the work of a task
// is saved when it must leave its machine.
func (b *jobBuilder) readCheckpoint() {
	var block *hclsyntax.Block
	for _, inner := range b.body.Blocks {
		if inner.Type != "checkpoint" {
			continue
		}
		if block != nil {
			b.reportProblem(inner.TypeRange, "there are two checkpoint blocks", "Put all of it into one.")
			return
		}
		block = inner
	}
	if block == nil || !b.parser.refuseLabels(block, "checkpoint { every = \"30m\" }") ||
		!b.parser.refuseUnknown(block, "a checkpoint block", checkpointSettings, nil) {
		return
	}
	inner := *b // the same job; names are looked up in the block
	inner.block, inner.body = block, block.Body
	if on, ok := inner.constantBool("enabled"); ok && !on {
		inner.refuseCheckpointSettings()
		return
	}
	b.ad.SetBool(roost.AttrCheckpoint, true)
	inner.readEvery()
	if v, ok := inner.constantBool("on_vacate"); ok {
		b.ad.SetBool(roost.AttrCheckpointVacate, v)
	}
	if v, ok := inner.constantBool("before_walltime"); ok {
		b.ad.SetBool(roost.AttrCheckpointAtLimit, v)
		if n, _ := b.ad.Int(roost.AttrWalltime); v && n == 0 {
			inner.reportProblem(block.Body.Attributes["before_walltime"].NameRange, "this job has no walltime",
				"A checkpoint before its end means nothing then. Set walltime, or remove before_walltime.")
		}
	}
	inner.readMethod()
	refuseUnsavedGang(&inner, block.TypeRange)
}

// refuseUnsavedGang refuses to save a gang in a way that does not work. Its tasks are
// saved together, and each of them has to say when it has saved its state.
func refuseUnsavedGang(b *jobBuilder, at hcl.Range) {
	size, _ := b.ad.Int(roost.AttrGangSize)
	led, _ := b.ad.Bool(roost.AttrMPIGang)
	self, _ := b.ad.Bool(roost.AttrCheckpointSelf)
	code, _ := b.ad.Int(roost.AttrCheckpointCode)
	switch {
	case size < 2:
	case led:
		b.reportProblem(at, "an MPI gang is not saved",
			"Only its first task has a program that could say that it has saved its state. Remove the checkpoint "+
				"block, or led if each task runs the program.")
	case !self:
		b.reportProblem(at, "no images are taken of a gang",
			"Images of processes that talk to each other would be of different moments. If the program saves its own "+
				"state, add method = \"self\", signal = \"USR2\" and exit_code = 85; else remove the checkpoint block.")
	case code == 0:
		b.reportProblem(at, "a gang that saves itself has no exit_code",
			"Its tasks are saved together, and each says by ending with that code that it has saved its state: "+
				"exit_code = 85.")
	}
}

// refuseCheckpointSettings handles a job that forbids checkpoints. Other settings of the
// block have no meaning then.
func (b *jobBuilder) refuseCheckpointSettings() {
	b.ad.SetBool(roost.AttrCheckpoint, false)
	for _, name := range checkpointSettings {
		if a := b.body.Attributes[name]; a != nil && name != "enabled" {
			b.reportProblem(a.NameRange, name+" means nothing where no checkpoints are taken",
				"Remove it, or remove enabled = false.")
			return
		}
	}
}

func (b *jobBuilder) readEvery() {
	s, at, ok := b.constantText("every", intervalHint)
	switch {
	case !ok:
	case s == "auto":
		b.ad.SetInt(roost.AttrCheckpointEvery, 0)
	case s == "never":
		b.ad.SetInt(roost.AttrCheckpointEvery, -1)
	default:
		d, err := roost.ParseDuration(s)
		if err != nil {
			b.reportProblem(at, fmt.Sprintf("%q is no length of time", truncateText(s)), intervalHint)
		} else if d < minInterval {
			b.reportProblem(at, "every is too short",
				fmt.Sprintf("It is %q, and has to be at least %v: each checkpoint stops the task for a moment.",
					s, minInterval))
		} else {
			b.ad.SetInt(roost.AttrCheckpointEvery, seconds(d))
		}
	}
}

// readMethod reads who makes the checkpoint, the machine or the program itself.
func (b *jobBuilder) readMethod() {
	const hint = "It is \"image\" (the machine saves the processes as they are) or \"self\" (the program saves its " +
		"own state)."
	methods := []string{"image", "self"}
	s, at, ok := b.constantText("method", hint)
	if ok && !slices.Contains(methods, s) {
		b.reportProblem(at, fmt.Sprintf("there is no method %q", truncateText(s)), hint+nearestHint(s, methods))
		return
	}
	if s != "self" {
		b.refuseSavedPorts(b.block)
		for _, name := range []string{"signal", "exit_code", "files"} {
			if a := b.body.Attributes[name]; a != nil {
				b.reportProblem(a.NameRange, name+" is for programs that save their own state",
					"Add method = \"self\" if yours does; else remove it.")
				return
			}
		}
		return
	}
	b.ad.SetBool(roost.AttrCheckpointSelf, true)
	if b.body.Attributes["signal"] == nil && b.body.Attributes["exit_code"] == nil &&
		b.body.Attributes["files"] == nil {
		b.reportProblem(at, "it is not said how the program saves its state",
			"Say what asks for it (signal = \"USR2\"), what the program ends with when it is done (exit_code = 85), "+
				"and which files have its state (files = [\"state/*\"]); not all are needed.")
		return
	}
	if name, at, ok := b.constantText("signal", "Write the name of a signal: signal = \"USR2\"."); ok {
		if _, err := roost.SignalNumber(name); err != nil {
			b.reportProblem(at, fmt.Sprintf("a program cannot be told with %q", truncateText(name)),
				"Write a signal that it can catch, such as \"USR1\", \"USR2\" or \"TERM\".")
		} else {
			b.ad.SetString(roost.AttrCheckpointSignal, name)
		}
	}
	if n, ok := b.constantInt("exit_code", 1, 255,
		"It is what the program ends with after it has saved its state, to be started again: exit_code = 85."); ok {
		b.ad.SetInt(roost.AttrCheckpointCode, n)
	}
	b.readCheckpointFiles()
}

// readCheckpointFiles reads which files contain the program's state.
func (b *jobBuilder) readCheckpointFiles() {
	v, at, ok := b.constantValue("files")
	if !ok {
		return
	}
	list, ok := b.taskReader().listElements(v, at, "files")
	if !ok {
		return
	}
	for _, f := range list {
		if !isLocalPath(f) || path.Clean(f) == "." {
			b.reportProblem(at, fmt.Sprintf("%q does not lie below the task's directory", truncateText(f)),
				"Write relative paths or patterns without \"..\": files = [\"state/*\"].")
			return
		}
	}
	b.ad.SetStrings(roost.AttrCheckpointFiles, list)
}
