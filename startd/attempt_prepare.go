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
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/meter"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

const (
	scriptName  = "script" // of the program text, in the attempt's directory
	scratchName = "job"    // of the scratch directory, among the attempt's own files
	// of the directory for temporary files in a scratch directory, where /tmp is the
	// machine's
	privateTempName = ".tmp"
)

// prepareAttempt makes what the attempt needs before its input can come.
func (h *claimRunner) prepareAttempt(a *claimAttempt) error {
	p := a.program
	if h.isSlotUser() && !p.GetScratch() {
		return fmt.Errorf("%w: on %s tasks of others run as slot users, who see none of their files there: have them "+
			"sent (transfer), and leave file_system_domain alone",
			errJobFault, h.host.config.Name)
	}
	r := &a.record
	r.Notice, r.Cwd, r.Stdout, r.Stderr, r.Join = time.Duration(p.GetNoticeNs()), p.GetCwd(), p.GetStdout(),
		p.GetStderr(), p.GetJoinOutput()
	r.IO, r.Boxed = h.host.boxPath(h.id), h.host.sandboxed
	r.OwnTemp = r.Boxed && !usesHostTemp(p)
	r.Bounds, r.Scripts = meter.LimitsOf(p.GetBounds()), h.newPrologueContext(p)
	r.Walltime, r.Expected, r.Once = time.Duration(p.GetWalltimeNs()), time.Duration(p.GetExpectedNs()), p.GetOnce()
	r.Interactive, r.PBS = p.GetInteractive(), isQsubJob(p)
	if policy := p.GetCheckpoint(); policy != nil {
		a.checkpoint.policy = policy
		r.Policy, r.Next = encodeReport(policy), policy.GetNext()
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
func (h *claimRunner) isSlotUser() bool {
	return h.file.Rights != nil && h.file.Rights.UID != h.file.UID
}

// boxPath is the directory of a claim's attempts, which their sandboxes are known by.
func (m *claimHost) boxPath(id slot.ClaimID) string { return filepath.Join(m.ioDir(), id.String()) }

// prepareBase makes the directory for the attempt's own files, and in it the scratch
// directory if it is to have one.
func (h *claimRunner) prepareBase(a *claimAttempt) error {
	agent, err := h.userAgent()
	if err != nil {
		return err
	}
	a.agent = agent
	r := &a.record
	if h.baseDir == "" {
		if h.baseDir, err = userfiles.MakeScratch(h.host.scratchDir(), h.id.String(), h.cred); err != nil {
			return err
		}
	}
	if r.Base = h.baseDir; !a.program.GetScratch() {
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
	return agent.Mkdir(a.ctx, r.Scratch, privateTempName, 0o700)
}

// writeFile writes what the user's program is to read where nobody but us can put
// anything, and gives the file to the user, who alone can read it.
func (h *claimRunner) writeFile(path, text string, mode os.FileMode) error {
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

// launchAttempt tells the starter to run the attempt, whose input is there.
func (h *claimRunner) launchAttempt(a *claimAttempt) error {
	if h.starter == nil {
		return fmt.Errorf("%w: there is no starter", roost.Unavailable)
	}
	restores := a.restoresProcesses()
	if restores {
		if err := h.unpackImage(a); err != nil {
			return err
		}
	} else if a.restoresImage() {
		if err := h.restoreSelfCheckpoint(a); err != nil {
			return err
		}
	}
	if !restores && a.record.Scratch != "" {
		there, err := a.agent.Snapshot(a.ctx, a.record.Scratch)
		if err != nil {
			return err
		}
		a.record.Before = fileAges(there)
	}
	a.record.Origin = meter.NewBaseline(h.group)
	if err := writeAttempt(h.attemptFile, &a.record); err != nil {
		return err
	}
	order := h.startCmd(a)
	if restores {
		order.Restore = h.host.restoreCommand(a)
	}
	a.program = &wire.Program{Executable: order.Executable, Stdin: a.program.GetStdin()} // for the words of a failure
	close(a.launchDone)
	h.measureFrom(a, a.record.Origin)
	return h.ownerSuspension.startTask(a.ref, func() error { return h.starter.Start(order) })
}

func fileAges(entries []userfiles.TransferEntry) map[string]fileAge {
	all := make(map[string]fileAge, len(entries))
	for _, e := range entries {
		all[e.Name] = fileAge{e.Size, e.Modified.UnixNano()}
	}
	return all
}

// startCmd is the attempt in the words of the starter.
func (h *claimRunner) startCmd(a *claimAttempt) starterclient.StartCmd {
	p, r := a.program, &a.record
	arguments := append(make([]string, 0, len(p.GetArguments())+3), resolveInterpreter(p)...)
	if len(p.GetScript()) > 0 || p.GetScriptFollows() {
		arguments = append(arguments, a.sandboxPath(filepath.Join(r.IO, scriptName)))
	}
	o := starterclient.StartCmd{
		Attempt: a.ref, Executable: arguments[0], Arguments: append(arguments, programTexts(p.GetArguments())...),
		Environment: h.environment(a), Cwd: a.sandboxPath(r.Cwd), Stdin: p.GetStdin(), Stdout: r.Stdout,
		Stderr: r.Stderr, Join: r.Join,
		Umask: p.GetUmask(), UID: h.cred.UID, GID: h.cred.GID, Groups: h.cred.Groups, Walltime: p.GetWalltimeNs(),
		Notice: p.GetNoticeNs(),
		IO:     r.IO, Sandbox: h.sandboxOf(a), Append: a.restoresImage(), OOMScore: h.oomScore(),
		Limits: r.Bounds.PerProcess(),
	}
	if r.Interactive {
		o.Arguments = waitForTerminal(a)
		o.Executable, o.Stdin = o.Arguments[0], ""
	}
	if o.Stdout == "" {
		o.Stdout = starterclient.Captured
	}
	if o.Stderr == "" && !o.Join {
		o.Stderr = starterclient.Captured
	}
	return o
}

// resolveInterpreter is the executable; of a script without one, what its first line
// names, with all that stands behind that as one word, as execve(2) has it. The kernel is
// not asked to read that line, because it would want a directory from which programs may
// be run.
func resolveInterpreter(p *wire.Program) []string {
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

// programTexts are the words of a program.
func programTexts(words [][]byte) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return list
}

// environment is the job's, and what only the machine knows.
func (h *claimRunner) environment(a *claimAttempt) []string {
	own := []string{
		"ROOST_NODE=" + h.host.config.Name,
		starterclient.CookieEnvVar + "=" + h.file.Cookie,
		fmt.Sprintf("ROOST_ATTEMPT=%d", a.ref.Number),
	}
	if s := a.record.Scratch; s != "" {
		own = append(own, "ROOST_SCRATCH="+a.sandboxPath(s))
		if !a.record.OwnTemp {
			own = append(own, "TMPDIR="+filepath.Join(s, privateTempName))
		}
	}
	if a.record.OwnTemp {
		own = append(own, "TMPDIR="+proto.SandboxTempDir)
	}
	given := programTexts(a.program.GetEnvironment())
	if isQsubJob(a.program) {
		own = append(own, h.pbsVariables(a)...)
	}
	own = append(append(own, hostFileVariables(a, given)...), h.host.gpus.Environment(h.file.gpuShares())...)
	all := make([]string, 0, len(given)+len(own))
	for _, v := range given {
		if !setsVariable(own, v) {
			all = append(all, v)
		}
	}
	if !setsVariable(own, "TMPDIR") && !setsVariable(all, "TMPDIR") {
		own = append(own, "TMPDIR="+proto.SandboxTempDir)
	}
	return append(all, own...)
}

// isQsubJob reports whether a program is a job of qsub: none is without its id.
func isQsubJob(p *wire.Program) bool {
	return setsVariable(programTexts(p.GetEnvironment()), "PBS_JOBID")
}

// pbsVariables is what jobs of qsub are told besides (OpenPBS, "Environment of a job"): a
// number that only this attempt's processes share, and where they are, if that is a
// directory of their own.
func (h *claimRunner) pbsVariables(a *claimAttempt) []string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", h.file.Cookie, a.ref.Number))
	list := []string{"PBS_JOBCOOKIE=" + hex.EncodeToString(sum[:16])}
	if s := a.record.Scratch; s != "" {
		list = append(list, "PBS_JOBDIR="+a.sandboxPath(s))
	}
	return list
}

// setsVariable reports whether the list has the variable that v sets.
func setsVariable(list []string, v string) bool {
	name, _, _ := strings.Cut(v, "=")
	for _, o := range list {
		if len(o) > len(name) && o[len(name)] == '=' && o[:len(name)] == name {
			return true
		}
	}
	return false
}

// removeAttemptFiles removes what the attempt left, but not what the starter keeps.
func (h *claimRunner) removeAttemptFiles(a *claimAttempt) {
	a.closeFiles()
	h.host.cleanRestore(a)
	if a.restoresImage() { // and has not come so far that it was unpacked
		h.host.images.Remove(h.imageKey(a, a.program.GetRestore()))
	}
	if t := a.checkpoint.unstored; t != nil {
		h.host.deleteImage(h.file.Schedd, t)
	}
	h.host.gpus.RemoveAttempt(h.id)
	for _, err := range []error{h.emptyBase(), h.emptyIO()} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			h.host.log.Warn("cannot clean up", "attempt", a.label(), "err", err)
		}
	}
}

// prepareIO makes the claim's directory for streams and script, which its attempts use
// one after the other: a file system looks long for a place for new files where it has
// just given some back (ext4 keeps away from those for five seconds), and short tasks
// would do little else.
func (h *claimRunner) prepareIO(path string) error {
	if h.ioDir {
		return nil
	}
	err := os.Mkdir(path, 0o711)
	h.ioDir = err == nil
	return err
}

// emptyBase removes what an attempt left in its directory, with its user's rights.
func (h *claimRunner) emptyBase() error {
	if h.baseDir == "" {
		return nil
	}
	agent, err := h.userAgent()
	if err == nil {
		err = agent.RemoveAll(context.Background(), h.baseDir, ".")
	}
	return err
}

// emptyIO makes the directory for streams ready for the next attempt. Nobody but us makes
// files there.
func (h *claimRunner) emptyIO() error {
	if !h.ioDir {
		return nil
	}
	dir := filepath.Join(h.host.ioDir(), h.id.String())
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		// whoever follows the next attempt's output must not be shown this one's
		if !isReusable(e) || os.Truncate(path, 0) != nil {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// isReusable reports whether a file is used again: not one that takes long to empty.
func isReusable(e fs.DirEntry) bool {
	switch e.Name() {
	case proto.CapturedFile(false), proto.CapturedFile(true), proto.StatusFile:
		info, err := e.Info()
		return err == nil && info.Mode().IsRegular() && info.Size() <= maxInlineOutput
	}
	return false
}

// removeFiles removes the directories of the claim's attempts.
func (h *claimRunner) removeFiles() {
	var errs []error
	if h.baseDir != "" {
		errs = append(errs, h.host.removeScratch(h.baseDir, h.userAgent))
	}
	if h.ioDir {
		errs = append(errs, os.RemoveAll(filepath.Join(h.host.ioDir(), h.id.String())))
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			h.host.log.Warn("cannot clean up", "claim", h.id, "err", err)
		}
	}
}

// findFiles finds the directories that an earlier start has made.
func (h *claimRunner) findFiles() {
	base := filepath.Join(h.host.scratchDir(), h.id.String())
	if _, err := os.Lstat(base); err == nil {
		h.baseDir = base
	}
	_, err := os.Lstat(filepath.Join(h.host.ioDir(), h.id.String()))
	h.ioDir = err == nil
}
