package transfer

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// sandboxFiles is how an attempt sees its files.
type sandboxFiles struct {
	queue.TaskProgram
	scratch bool // in a directory of its own on the node: files travel
	inputs  []string
	objectFiles
}

// hasTransfers reports whether anything has to be sent before the attempt starts. An
// image of its processes brings what was in its scratch directory with it; one that a
// checkpoint server has the node fetches itself.
func (pl *sandboxFiles) hasTransfers() bool {
	return len(pl.inputs) > 0 || pl.hasObjects() || pl.ScriptFile != "" || len(pl.Secrets) > 0 ||
		pl.Restore != nil && pl.Restore.Server == ""
}

// usesScratch decides where an attempt runs. It runs in place when the node sees the same
// files, otherwise in a scratch directory (Transfer "auto").
func (t *FileTransfers) usesScratch(transfer, domain, node string) bool {
	shared := domain != "" && domain == t.domains[node]
	return transfer == "always" || transfer == jobad.TransferStore || transfer == "auto" && !shared
}

// filesFor returns how an attempt on a node sees its files.
func (t *FileTransfers) filesFor(p queue.TaskProgram, node string) sandboxFiles {
	pl := sandboxFiles{TaskProgram: p, scratch: t.usesScratch(p.Transfer, p.Domain, node)}
	if pl.scratch {
		pl.inputs = p.Inputs
		if p.In != "" && p.In != os.DevNull {
			pl.inputs = append(pl.inputs, p.In+" => "+stdinName)
		}
		if isTransferredProgram(p) {
			pl.inputs = append(pl.inputs, p.Executable)
		}
		pl.splitObjects()
	}
	if p.Restore != nil && !p.Restore.SelfCheckpoint {
		pl.inputs, pl.objectInputs = nil, nil // what it made of them is in the image
	}
	return pl
}

// stdinName is the name of the standard input in a scratch directory. It differs from the
// file's own name, because an input of the job may have that name.
const stdinName = ".roost-stdin"

// isTransferredProgram reports whether the program is a file of the submitter's, as
// ./program is.
func isTransferredProgram(p queue.TaskProgram) bool {
	return p.Script == "" && p.ScriptFile == "" && !filepath.IsAbs(p.Executable) &&
		filepath.Base(p.Executable) != p.Executable
}

// scratchPath is where the scratch directory has an input with a relative path. It is the
// name that userfiles.Agent gives to what it sends.
func scratchPath(path string) string {
	if path = filepath.Clean(path); !filepath.IsLocal(path) {
		path = filepath.Base(path)
	}
	return "./" + path
}

// BuildProgram makes what the startd is to run, and reports whether something has to be
// sent before it starts.
func (t *FileTransfers) BuildProgram(a roost.AttemptID, node string) (w *wire.Program, hasTransfers bool, err error) {
	p, err := t.queue.Program(a)
	if err != nil {
		return nil, false, err
	}
	pl := t.filesFor(p, node)
	w = &wire.Program{
		Executable: p.Executable, Arguments: programStrings(p.Arguments),
		Environment: programStrings(t.buildEnvironment(p, a)), Script: []byte(p.Script),
		ScriptFollows: p.ScriptFile != "", Umask: p.Umask,
		WalltimeNs: int64(p.Walltime), ExpectedNs: int64(p.PredictedRuntime), Once: p.NotRerunnable,
		Priority:    int32(p.Priority),
		Interactive: p.Interactive, NoticeNs: int64(p.NoticePeriod), JobName: p.Name, Uid: p.UID, Gid: p.GID,
		User: p.Owner, Scratch: pl.scratch,
		Checkpoint: codec.WireCheckpointPolicy(p.Checkpoint, pl.scratch), Restore: codec.WireImage(p.Restore,
			p.RestoreKey),
		Bounds:  codec.WireBounds(p.Bounds),
		Service: codec.WireService(p.Service, p.Revision), Container: codec.WireContainer(p.Container),
		Packages: codec.WirePackages(p.Packages),
		PbsId:    p.PBS, Queue: p.Queue, Account: p.Account,
		NodeFile: pbsNodeFile(p.Hosts), GpuFile: t.pbsGPUFile(p.Hosts), Slurm: wireSlurm(p.Slurm),
	}
	if g := p.Ranks; g != nil {
		w.Mpi = &wire.MpiRanks{KvsName: fmt.Sprintf("roost_%d_%d_%d", a.Task.Job.Seq, a.Task.Index-g.Index, a.Attempt),
			FirstRank: uint32(g.FirstRank), Ranks: uint32(g.Members[g.Index].Processes), Size: uint32(g.Size()),
			Nodes: uint32(len(g.Members))}
	}
	if w.Mpi != nil || len(w.GetNodeFile()) > 0 {
		w.MpiNetwork = t.mpiNetwork
	}
	for _, s := range p.Secrets {
		w.Secrets = append(w.Secrets, s.Name)
		w.SecretVariables = append(w.SecretVariables, s.Variable)
	}
	if pl.scratch {
		w.Outputs, w.Inputs = pl.Outputs, append(inputPatterns(p.Iwd, pl.inputs), pl.objectPatterns()...)
		w.JoinOutput = p.JoinErr
		if p.In != "" && p.In != os.DevNull {
			w.Stdin = stdinName
		}
		if isTransferredProgram(p) {
			w.Executable = scratchPath(p.Executable)
		}
		return w, pl.hasTransfers(), invalidUTF8(w)
	}
	w.Cwd, w.JoinOutput = p.Iwd, p.JoinErr
	w.Stdin, w.Stdout, w.Stderr = AbsolutePath(p.Iwd, p.In), AbsolutePath(p.Iwd, p.Out), AbsolutePath(p.Iwd, p.Err)
	return w, pl.hasTransfers(), invalidUTF8(w)
}

// inputPatterns are the patterns of the files that are sent, as the node compares them.
// An absolute path in the submit directory becomes a path in the scratch directory.
func inputPatterns(iwd string, patterns []string) []string {
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

// invalidUTF8 says which name in a program is not UTF-8, nil if all are. The message
// could not be sent, and the attempt would be lost again and again.
func invalidUTF8(w *wire.Program) error {
	names := append([]string{w.GetExecutable(), w.GetCwd(), w.GetStdin(), w.GetStdout(), w.GetStderr(), w.GetJobName()},
		w.GetOutputs()...)
	for _, name := range append(names, w.GetInputs()...) {
		if !utf8.ValidString(name) {
			return fmt.Errorf("%q is not in UTF-8, and names have to be", name)
		}
	}
	return nil
}

func programStrings(list []string) [][]byte {
	all := make([][]byte, len(list))
	for i, w := range list {
		all[i] = []byte(w)
	}
	return all
}

// AbsolutePath makes a path absolute; an empty one stays empty.
func AbsolutePath(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// buildEnvironment adds what every task is told about itself.
func (t *FileTransfers) buildEnvironment(p queue.TaskProgram, a roost.AttemptID) []string {
	hostVariables(p.Environment, p)
	if len(p.Peers) > 0 {
		p.Environment = append(p.Environment, "ROOST_GANG_RANK="+strconv.Itoa(p.Rank),
			"ROOST_GANG_SIZE="+strconv.Itoa(len(p.Peers)), "ROOST_GANG_NODES="+strings.Join(p.Peers, ","))
	}
	p.Environment = append(p.Environment, slurmVariables(p.Slurm)...)
	return append(p.Environment,
		"ROOST_JOB_ID="+a.Task.Job.String(),
		"ROOST_TASK_ID="+t.queue.TaskName(a.Task),
		"ROOST_TASK_INDEX="+strconv.Itoa(t.queue.UserIndex(a.Task)),
		"ROOST_ATTEMPT="+strconv.FormatUint(uint64(a.Attempt), 10),
		"ROOST_JOB_NAME="+p.Name,
		"ROOST_SUBMIT_DIR="+p.Iwd,
		"ROOST_SUBMIT_HOST="+t.host,
	)
}
