package transfer

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// maxStoredSets bounds how many different sets of input files the tasks of one submission
// have.
const maxStoredSets = 1000

// StoreInputs stores the input files of jobs of a user of this host, and names them in
// the ads. It reports whether there were any.
func (t *FileTransfers) StoreInputs(ctx context.Context, who queue.CallerIdentity, specs []queue.SubmitSpec) (bool,
	error) {
	s := &inputStorer{FileTransfers: t, who: who, names: map[string]string{}}
	some := false
	for i := range specs {
		if mode, _ := specs[i].Ad.Str(roost.AttrTransfer); mode != jobad.TransferStore {
			continue
		}
		some = true
		if err := s.storeJob(ctx, &specs[i]); err != nil {
			return false, fmt.Errorf("job %d: %w", i, err)
		}
	}
	return some, nil
}

// inputStorer stores the input files of one submission.
type inputStorer struct {
	*FileTransfers
	who   queue.CallerIdentity
	names map[string]string // of the stored sets, by their directory and patterns
}

// storeJob names the stored input of a job, or that of each of its tasks in a column.
func (s *inputStorer) storeJob(ctx context.Context, spec *queue.SubmitSpec) error {
	spec.Columns = slices.DeleteFunc(spec.Columns, func(c queue.TaskColumn) bool {
		return c.Name == roost.AttrStoredInput
	})
	spec.Ad.Delete(roost.AttrStoredInput)
	own := make([]string, 0, max(spec.Count, 0))
	for task := range min(spec.Count, roost.MaxTasks) {
		p, same, err := submittedProgram(spec, task)
		if err != nil {
			return err
		}
		name, err := s.storeSet(ctx, p)
		if err != nil {
			return err
		}
		if same {
			if name != "" {
				spec.Ad.SetString(roost.AttrStoredInput, name)
			}
			return nil
		}
		own = append(own, name)
	}
	spec.Ad.SetString(roost.AttrStoredInput, "$("+roost.AttrStoredInput+")")
	spec.Columns = append(spec.Columns, queue.TaskColumn{Name: roost.AttrStoredInput, Values: own})
	return nil
}

// submittedProgram returns what a task says of its input files, before its job has an id.
// It is the same for all tasks if the job says nothing of the single task there.
func submittedProgram(spec *queue.SubmitSpec, task int) (p queue.TaskProgram, same bool, err error) {
	same = true
	m := jobad.AdSubstituter{Ad: spec.Ad, Value: func(name string) string {
		same = false
		if name == "TaskIndex" {
			return strconv.Itoa(task)
		}
		for _, c := range spec.Columns {
			if c.Name == name && task < len(c.Values) {
				return c.Values[task]
			}
		}
		err = fmt.Errorf("%w: $(%s) in the name of an input file: with transfer = \"store\" the files are read when "+
			"the job is submitted, and only columns and $(TaskIndex) are known then", roost.Invalid, name)
		return ""
	}}
	p = queue.TaskProgram{Transfer: jobad.TransferStore, Executable: m.Text(roost.AttrCmd), Iwd: m.Text(roost.AttrIwd),
		In: m.Text(roost.AttrIn), Inputs: m.List(roost.AttrTransferIn)}
	p.Script, _ = spec.Ad.Str(roost.AttrScript)
	p.ScriptFile, _ = spec.Ad.Str(roost.AttrScriptFile)
	return p, same, err
}

// storeSet stores the input files of a task, unless that has been done for another one,
// and returns their name. It is empty if there are none.
func (s *inputStorer) storeSet(ctx context.Context, p queue.TaskProgram) (name string, err error) {
	inputs := s.filesFor(p, "").inputs
	if len(inputs) == 0 {
		return "", nil
	}
	key := p.Iwd + "\x00" + strings.Join(inputs, "\x00")
	if name, done := s.names[key]; done {
		return name, nil
	}
	if len(s.names) >= maxStoredSets {
		return "", fmt.Errorf("%w: the tasks have more than %d different sets of input files: submit them in parts, "+
			"or give all tasks the same files", roost.Exhausted, maxStoredSets)
	}
	agent, err := s.users.Agent(s.who.UID, s.who.GID)
	if err != nil {
		return "", err
	}
	entries, err := agent.Expand(ctx, p.Iwd, inputs)
	if err != nil {
		return "", err
	}
	f, err := s.SpoolFiles.createTemporary()
	if err != nil {
		return "", err
	}
	defer f.Close()
	send, err := userfiles.WriteStored(f, userfiles.Totals(entries))
	if err == nil {
		err = userfiles.SendEntries(ctx, send, agent, p.Iwd, entries,
			userfiles.SendOptions{SendHoles: true, MayGrow: true})
	}
	if err == nil {
		name, err = s.putTemporary(ctx, f, s.host, s.who.UID)
	}
	s.names[key] = name
	return name, err
}

// sendStored sends an attempt's stored input files to its node.
func (s inputSend) sendStored(opts userfiles.SendOptions) (reply *wire.PutReply, err error) {
	if s.files.StoredInput == "" {
		return nil, fmt.Errorf("%w: its input files were not stored when it was submitted: submit it again",
			roost.NoInput)
	}
	file := queue.UserScript{Node: s.files.ScriptNode, UID: s.files.UID, Name: s.files.StoredInput}
	err = s.ReadStoredFile(s.pace.ctx, file, 0, func(r io.Reader) error {
		reply, err = s.replayStored(r, opts)
		return err
	})
	return reply, err
}

// replayStored sends a node the stored input files that it reads.
func (s inputSend) replayStored(stored io.Reader, opts userfiles.SendOptions) (*wire.PutReply, error) {
	totals, recv, err := userfiles.ReadStored(stored)
	if err != nil {
		return nil, err
	}
	put, err := s.node.Client.Put(s.pace.ctx)
	if err != nil {
		return nil, err
	}
	progress, done := s.progress.begin(s.attempt, inputTransfer, totals.GetBytes())
	defer done()
	s.pace.progress = progress
	answered := false
	send := s.pace.sendPaced(func(m *wire.FileChunk) error {
		err := put.Send(m)
		answered = err != nil
		return err
	})
	pass := storedPasser{inputSend: s, opts: opts, send: send}
	if err = send(&wire.FileChunk{Schedd: s.host, Attempt: codec.AttemptRef(s.attempt), Totals: totals}); err == nil {
		err = userfiles.CopyEntries(recv, &userfiles.TransferManifest{Totals: totals}, pass.pass)
	}
	if err != nil && !answered {
		return nil, err
	}
	reply, err := put.CloseAndRecv() // it has the cause if the node has answered already
	return reply, rpc.FromStatus(err)
}

// storedPasser passes stored files on, without those that the node has.
type storedPasser struct {
	inputSend
	opts    userfiles.SendOptions
	send    func(*wire.FileChunk) error
	version string // of the present file; empty: it is not cached
	skips   bool   // the node has the present file
}

func (p *storedPasser) pass(m *wire.FileChunk) error {
	if e := m.GetEntry(); e != nil {
		p.version, p.skips = "", false
		if p.opts.Cache != nil && e.GetSize() >= userfiles.MinCachedBytes {
			p.version = "stored " + p.files.StoredInput + "/" + e.GetName()
			sum, cacheable := p.opts.Cache.Find(p.version)
			if p.skips = sum != nil; p.skips {
				return p.send(&wire.FileChunk{Entry: e, Cached: true, Sha256: sum})
			}
			m.Cacheable = cacheable
		}
	}
	switch {
	case p.skips:
		return nil
	case m.GetHole() > 0 && !p.opts.SendHoles:
		return fmt.Errorf("%w: the release of the machine is too old for files with holes", roost.Unavailable)
	case m.GetEof() && p.version != "":
		p.opts.Cache.Sent(p.version, m.GetSha256())
	}
	return p.send(m)
}
