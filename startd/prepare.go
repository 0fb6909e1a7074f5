package startd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter"
	"github.com/roost-batch/roost/startd/starter/proto"
)

const (
	scriptName  = "script" // of the program text, in the attempt's directory
	scratchName = "job"    // of the scratch directory, among the attempt's own files
	privateTemp = ".tmp"   // of the directory for temporary files in a scratch directory, where /tmp is the machine's
)

// prepare makes what the attempt needs before its input can come.
func (h *hand) prepare(a *attempt) error {
	p := a.program
	if h.isSlotUser() && !p.GetScratch() {
		return fmt.Errorf("%w: on %s tasks of others run as slot users, who see none of their files there: have them sent (transfer), and leave file_system_domain alone",
			errJob, h.m.own.Name)
	}
	r := &a.record
	r.Notice, r.Cwd, r.Stdout, r.Stderr, r.Join = time.Duration(p.GetNoticeNs()), p.GetCwd(), p.GetStdout(), p.GetStderr(), p.GetJoinOutput()
	r.IO, r.Boxed = h.m.boxPath(h.id), h.m.boxes
	r.OwnTemp = r.Boxed && !namesTemp(p)
	r.Bounds, r.Scripts = boundsOf(p.GetBounds()), h.facts(p)
	r.Walltime, r.Expected, r.Once = time.Duration(p.GetWalltimeNs()), time.Duration(p.GetExpectedNs()), p.GetOnce()
	r.Interactive, r.PBS = p.GetInteractive(), ofQsub(p)
	if policy := p.GetCheckpoint(); policy != nil {
		a.saving.policy = policy
		r.Policy, r.Next = encode(policy), policy.GetNext()
	}
	if err := h.prepareIO(r.IO); err != nil {
		return err
	}
	if p.GetScratch() || r.OwnTemp {
		if err := h.prepareBase(a); err != nil {
			return err
		}
	}
	if err := h.writeHosts(a); err != nil {
		return err
	}
	if r.Interactive {
		return h.prepareTerminal(filepath.Join(r.IO, terminalName))
	}
	if len(p.GetScript()) > 0 {
		return h.writeFile(filepath.Join(r.IO, scriptName), string(p.GetScript()), 0o500)
	}
	return nil
}

// isSlotUser reports whether the claim's tasks run as a slot user.
func (h *hand) isSlotUser() bool { return h.file.Rights != nil && h.file.Rights.UID != h.file.UID }

// boxPath is the directory of a claim's attempts, which their sandboxes are known by.
func (m *machine) boxPath(id slot.ClaimID) string { return filepath.Join(m.ioDir(), id.String()) }

// prepareBase makes the directory for the attempt's own files, and in it the scratch directory if it is to have one.
func (h *hand) prepareBase(a *attempt) error {
	agent, err := h.userAgent()
	if err != nil {
		return err
	}
	a.agent = agent
	r := &a.record
	if h.base == "" {
		if h.base, err = files.MakeScratch(h.m.scratchDir(), h.id.String(), h.cred); err != nil {
			return err
		}
	}
	if r.Base = h.base; !a.program.GetScratch() {
		return nil
	}
	if err := agent.Mkdir(a.ctx, r.Base, scratchName, 0o700); err != nil {
		return err
	}
	r.Scratch = filepath.Join(r.Base, scratchName)
	r.Cwd, r.Outputs = r.Scratch, a.program.GetOutputs()
	if len(r.Outputs) > 0 { // then only what is named comes back, and these are
		for _, own := range []string{r.Stdout, r.Stderr} {
			if own != "" && filepath.IsLocal(own) {
				r.Outputs = append(r.Outputs[:len(r.Outputs):len(r.Outputs)], own)
			}
		}
	}
	if r.OwnTemp {
		return nil
	}
	return agent.Mkdir(a.ctx, r.Scratch, privateTemp, 0o700)
}

// writeFile writes what the user's program is to read where nobody but us can put anything, and gives the file to the user, who alone can read it.
func (h *hand) writeFile(path, text string, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil && int(h.cred.UID) != os.Geteuid() {
		err = f.Chown(int(h.cred.UID), int(h.cred.GID))
	}
	return errors.Join(err, f.Close())
}

// launch tells the starter to run the attempt, whose input is there.
func (h *hand) launch(a *attempt) error {
	if h.starter == nil {
		return fmt.Errorf("%w: there is no starter", roost.Unavailable)
	}
	restores := a.restores()
	if restores {
		if err := h.unpack(a); err != nil {
			return err
		}
	} else if a.continues() {
		if err := h.bringBack(a); err != nil {
			return err
		}
	}
	if !restores && a.record.Scratch != "" {
		there, err := a.agent.Snapshot(a.ctx, a.record.Scratch)
		if err != nil {
			return err
		}
		a.record.Before = ages(there)
	}
	a.record.Origin = h.origin()
	if err := writeAttempt(h.attemptFile, &a.record); err != nil {
		return err
	}
	order := h.order(a)
	if restores {
		order.Restore = h.m.helper(a)
	}
	a.program = &wire.Program{Executable: order.Executable, Stdin: a.program.GetStdin()} // for the words of a failure
	close(a.launched)
	h.measureFrom(a, a.record.Origin)
	return h.still.launch(a.ref, func() error { return h.starter.Start(order) })
}

func ages(entries []files.Entry) map[string]fileAge {
	all := make(map[string]fileAge, len(entries))
	for _, e := range entries {
		all[e.Name] = fileAge{e.Size, e.Modified.UnixNano()}
	}
	return all
}

// order is the attempt in the words of the starter.
func (h *hand) order(a *attempt) starter.Order {
	p, r := a.program, &a.record
	arguments := append(make([]string, 0, len(p.GetArguments())+3), interpreter(p)...)
	if len(p.GetScript()) > 0 || p.GetScriptFollows() {
		arguments = append(arguments, a.inside(filepath.Join(r.IO, scriptName)))
	}
	o := starter.Order{
		Attempt: a.ref, Executable: arguments[0], Arguments: append(arguments, texts(p.GetArguments())...),
		Environment: h.environment(a), Cwd: a.inside(r.Cwd), Stdin: p.GetStdin(), Stdout: r.Stdout, Stderr: r.Stderr, Join: r.Join,
		Umask: p.GetUmask(), UID: h.cred.UID, GID: h.cred.GID, Groups: h.cred.Groups, Walltime: p.GetWalltimeNs(), Notice: p.GetNoticeNs(),
		IO: r.IO, Box: h.boxOf(a), Append: a.continues(), Expendable: h.expendable(),
		Bounds: r.Bounds.each(),
	}
	if r.Interactive {
		o.Arguments = waitForTerminal(a)
		o.Executable, o.Stdin = o.Arguments[0], ""
	}
	if o.Stdout == "" {
		o.Stdout = starter.Captured
	}
	if o.Stderr == "" && !o.Join {
		o.Stderr = starter.Captured
	}
	return o
}

// interpreter is the executable; of a script without one, what its first line names, with all that stands behind that as one word, as execve(2) has
// it. The kernel is not asked to read that line, because it would want a directory from which programs may be run.
func interpreter(p *wire.Program) []string {
	if p.GetExecutable() != "" {
		return []string{p.GetExecutable()}
	}
	first, _, _ := strings.Cut(string(p.GetScript()), "\n")
	first = strings.Trim(strings.TrimPrefix(first, "#!"), " \t")
	switch at := strings.IndexAny(first, " \t"); {
	case first == "":
		return []string{"/bin/sh"}
	case at < 0:
		return []string{first}
	default:
		return []string{first[:at], strings.TrimLeft(first[at:], " \t")}
	}
}

// texts are the words of a program.
func texts(words [][]byte) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return list
}

// environment is the job's, and what only the machine knows.
func (h *hand) environment(a *attempt) []string {
	own := []string{
		"ROOST_NODE=" + h.m.own.Name,
		starter.CookieVariable + "=" + h.file.Cookie,
		fmt.Sprintf("ROOST_ATTEMPT=%d", a.ref.Number),
	}
	if s := a.record.Scratch; s != "" {
		own = append(own, "ROOST_SCRATCH="+a.inside(s))
		if !a.record.OwnTemp {
			own = append(own, "TMPDIR="+filepath.Join(s, privateTemp))
		}
	}
	if a.record.OwnTemp {
		own = append(own, "TMPDIR="+proto.TempInside)
	}
	given := texts(a.program.GetEnvironment())
	if ofQsub(a.program) {
		own = append(own, h.ofPBS(a)...)
	}
	own = append(append(own, hostFiles(a, given)...), h.m.gpus.environment(h.file.gpus())...)
	all := make([]string, 0, len(given)+len(own))
	for _, v := range given {
		if !sets(own, v) {
			all = append(all, v)
		}
	}
	if !sets(own, "TMPDIR") && !sets(all, "TMPDIR") {
		own = append(own, "TMPDIR="+proto.TempInside)
	}
	return append(all, own...)
}

// ofQsub reports whether a program is a job of qsub: none is without its id.
func ofQsub(p *wire.Program) bool { return sets(texts(p.GetEnvironment()), "PBS_JOBID") }

// ofPBS is what jobs of qsub are told besides (OpenPBS, "Environment of a job"): a number that only this attempt's processes share, and where they are, if
// that is a directory of their own.
func (h *hand) ofPBS(a *attempt) []string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", h.file.Cookie, a.ref.Number))
	list := []string{"PBS_JOBCOOKIE=" + hex.EncodeToString(sum[:16])}
	if s := a.record.Scratch; s != "" {
		list = append(list, "PBS_JOBDIR="+a.inside(s))
	}
	return list
}

// sets reports whether the list has the variable that v sets.
func sets(list []string, v string) bool {
	name, _, _ := strings.Cut(v, "=")
	for _, o := range list {
		if len(o) > len(name) && o[len(name)] == '=' && o[:len(name)] == name {
			return true
		}
	}
	return false
}

// clean removes what the attempt left, but not what the starter keeps.
func (h *hand) clean(a *attempt) {
	a.close()
	h.m.cleanRestore(a)
	if a.continues() { // and has not come so far that it was unpacked
		h.m.images.Remove(h.imageKey(a, a.program.GetRestore()))
	}
	if t := a.saving.unkept; t != nil {
		h.m.forgetImage(h.file.Schedd, t)
	}
	h.m.gpus.leave(h.id)
	for _, err := range []error{h.emptyBase(), h.emptyIO()} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			h.m.log.Warn("cannot clean up", "attempt", a.label(), "err", err)
		}
	}
}

// prepareIO makes the claim's directory for streams and script, which its attempts use one after the other: a file system looks long for a place
// for new files where it has just given some back (ext4 keeps away from those for five seconds), and short tasks would do little else.
func (h *hand) prepareIO(path string) error {
	if h.io {
		return nil
	}
	err := os.Mkdir(path, 0o711)
	h.io = err == nil
	return err
}

// emptyBase removes what an attempt left in its directory, with its user's rights.
func (h *hand) emptyBase() error {
	if h.base == "" {
		return nil
	}
	agent, err := h.userAgent()
	if err == nil {
		err = agent.RemoveAll(context.Background(), h.base, ".")
	}
	return err
}

// emptyIO makes the directory for streams ready for the next attempt. Nobody but us makes files there.
func (h *hand) emptyIO() error {
	if !h.io {
		return nil
	}
	dir := filepath.Join(h.m.ioDir(), h.id.String())
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !stays(e) || os.Truncate(path, 0) != nil { // whoever follows the next attempt's output must not be shown this one's
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// stays reports whether a file is used again: not one that takes long to empty.
func stays(e fs.DirEntry) bool {
	switch e.Name() {
	case proto.CapturedName(false), proto.CapturedName(true), proto.StatusName:
		info, err := e.Info()
		return err == nil && info.Mode().IsRegular() && info.Size() <= inlineOutput
	}
	return false
}

// removeFiles removes the directories of the claim's attempts.
func (h *hand) removeFiles() {
	var errs []error
	if h.base != "" {
		errs = append(errs, h.m.removeScratch(h.base, h.userAgent))
	}
	if h.io {
		errs = append(errs, os.RemoveAll(filepath.Join(h.m.ioDir(), h.id.String())))
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			h.m.log.Warn("cannot clean up", "claim", h.id, "err", err)
		}
	}
}

// findFiles finds the directories that an earlier start has made.
func (h *hand) findFiles() {
	base := filepath.Join(h.m.scratchDir(), h.id.String())
	if _, err := os.Lstat(base); err == nil {
		h.base = base
	}
	_, err := os.Lstat(filepath.Join(h.m.ioDir(), h.id.String()))
	h.io = err == nil
}
