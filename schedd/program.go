package schedd

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
)

// placement is how an attempt sees its files.
type placement struct {
	queue.Program
	scratch bool // in a directory of its own on the node: files travel
	inputs  []string
}

// awaited reports whether anything has to be sent before the attempt starts. An image of its processes brings what was in its scratch directory with
// it; one that a checkpoint server has the node fetches itself.
func (pl *placement) awaited() bool {
	return len(pl.inputs) > 0 || pl.ScriptFile != "" || pl.Restore != nil && pl.Restore.Server == ""
}

// place decides where an attempt runs: in place when the node sees the same files, else in a scratch directory (Transfer "auto").
func (s *Schedd) place(p queue.Program, node string) placement {
	shared := p.Domain != "" && p.Domain == s.domains[node]
	pl := placement{Program: p, scratch: p.Transfer == "always" || p.Transfer == "auto" && !shared}
	if pl.scratch {
		pl.inputs = p.Inputs
		if p.In != "" && p.In != os.DevNull {
			pl.inputs = append(pl.inputs, p.In+" => "+stdinName)
		}
		if broughtAlong(p) {
			pl.inputs = append(pl.inputs, p.Executable)
		}
	}
	if p.Restore != nil && !p.Restore.Self {
		pl.inputs = nil // what it made of them is in the image
	}
	return pl
}

// stdinName is what the standard input is called in a scratch directory: an input of the job may have the file's own name.
const stdinName = ".roost-stdin"

// broughtAlong reports whether the program is a file of the submitter's, as ./program is.
func broughtAlong(p queue.Program) bool {
	return p.Script == "" && p.ScriptFile == "" && !filepath.IsAbs(p.Executable) && filepath.Base(p.Executable) != p.Executable
}

// inScratch is where an input with a relative path is found in the scratch directory, as files.Agent names what it sends.
func inScratch(path string) string {
	if path = filepath.Clean(path); !filepath.IsLocal(path) {
		path = filepath.Base(path)
	}
	return "./" + path
}

// program makes what the startd is to run.
func (s *Schedd) program(a roost.AttemptID, node string) (*wire.Program, placement, error) {
	p, err := s.queue.Launch(a)
	if err != nil {
		return nil, placement{}, err
	}
	pl := s.place(p, node)
	w := &wire.Program{
		Executable: p.Executable, Arguments: words(p.Arguments), Environment: words(s.environment(p, a)), Script: []byte(p.Script), ScriptFollows: p.ScriptFile != "", Umask: p.Umask,
		WalltimeNs: int64(p.Walltime), ExpectedNs: int64(p.Expected), Once: p.Once, Interactive: p.Interactive, NoticeNs: int64(p.Notice), JobName: p.Name, Uid: p.UID, Gid: p.GID, User: p.Owner, Scratch: pl.scratch,
		Checkpoint: wirePolicy(p.Checkpoint, pl.scratch), Restore: wireImage(p.Restore, p.RestoreKey), Bounds: wireBounds(p.Bounds),
		PbsId: p.PBS, Queue: p.Queue, Account: p.Account,
		NodeFile: nodeFile(p.Hosts), GpuFile: s.gpuFile(p.Hosts),
	}
	if pl.scratch {
		w.Outputs, w.Inputs = p.Outputs, askedInputs(p.Iwd, pl.inputs)
		w.JoinOutput = p.Join
		if p.In != "" && p.In != os.DevNull {
			w.Stdin = stdinName
		}
		if broughtAlong(p) {
			w.Executable = inScratch(p.Executable)
		}
		return w, pl, unnamed(w)
	}
	w.Cwd, w.JoinOutput = p.Iwd, p.Join
	w.Stdin, w.Stdout, w.Stderr = under(p.Iwd, p.In), under(p.Iwd, p.Out), under(p.Iwd, p.Err)
	return w, pl, unnamed(w)
}

// askedInputs are patterns of what is sent, as the node is to compare it: an absolute path of the submit directory is one in it there.
func askedInputs(iwd string, patterns []string) []string {
	var all []string
	for _, p := range patterns {
		from, as, renamed := strings.Cut(p, " => ")
		rel, err := filepath.Rel(iwd, strings.TrimSpace(from))
		switch {
		case renamed && strings.TrimSpace(as) != "" || !filepath.IsAbs(strings.TrimSpace(from)):
		case err == nil && filepath.IsLocal(rel):
			p = rel
		case strings.ContainsAny(from, "*?["): // it may stand for the submit directory
			p = "."
		}
		all = append(all, p)
	}
	return all
}

// unnamed says which name in a program is not UTF-8, nil if all are. The message could not be sent, and the attempt would be lost again and again.
func unnamed(w *wire.Program) error {
	names := append([]string{w.GetExecutable(), w.GetCwd(), w.GetStdin(), w.GetStdout(), w.GetStderr(), w.GetJobName()}, w.GetOutputs()...)
	for _, name := range append(names, w.GetInputs()...) {
		if !utf8.ValidString(name) {
			return fmt.Errorf("%q is not in UTF-8, and names have to be", name)
		}
	}
	return nil
}

func words(list []string) [][]byte {
	all := make([][]byte, len(list))
	for i, w := range list {
		all[i] = []byte(w)
	}
	return all
}

// under makes a path absolute; an empty one stays empty.
func under(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// environment adds what every task is told about itself.
func (s *Schedd) environment(p queue.Program, a roost.AttemptID) []string {
	hostVariables(p.Environment, p)
	if len(p.Peers) > 0 {
		p.Environment = append(p.Environment, "ROOST_GANG_RANK="+itoa(uint64(p.Rank)), "ROOST_GANG_SIZE="+itoa(uint64(len(p.Peers))), "ROOST_GANG_NODES="+strings.Join(p.Peers, ","))
	}
	return append(p.Environment,
		"ROOST_JOB_ID="+a.Task.Job.String(),
		"ROOST_TASK_ID="+s.queue.Name(a.Task),
		"ROOST_TASK_INDEX="+strconv.Itoa(s.queue.Index(a.Task)),
		"ROOST_ATTEMPT="+itoa(uint64(a.Attempt)),
		"ROOST_JOB_NAME="+p.Name,
		"ROOST_SUBMIT_DIR="+p.Iwd,
		"ROOST_SUBMIT_HOST="+s.node.Name,
	)
}

// unlaunchable ends an attempt that could not even be put together. The startd never heard of it.
func (s *Schedd) unlaunchable(e dispatch.Activate, err error, now time.Time) {
	s.finish(e.Attempt, &wire.ExitStatus{Cause: wire.Cause_CAUSE_LAUNCH, Reason: err.Error()}, now)
}
