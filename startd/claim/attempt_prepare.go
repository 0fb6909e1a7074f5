package claim

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/gpudriver"
	"github.com/roost-batch/roost/startd/meter"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

const (
	scriptName  = "script"       // of the program text, in the attempt's directory
	slurmScript = "slurm_script" // the same of a job of sbatch, whose users look for it in $0
	scratchName = "job"          // of the scratch directory, among the attempt's own files
	// of the directory for temporary files in a scratch directory, where /tmp is the
	// machine's
	privateTempName = ".tmp"
)

// launcher is the runner of a claim as far as it prepares attempts and has them started.
type launcher struct{ *Runner }

func (h *Runner) launcher() launcher { return launcher{h} }

// prepareAttempt makes what the attempt needs before its input can come.
func (h launcher) prepareAttempt(a *Attempt) error {
	p := a.program
	if h.isSlotUser() && !p.GetScratch() {
		return fmt.Errorf("%w: on %s tasks of others run as slot users, who see none of their files there: have them "+
			"sent (transfer), and leave file_system_domain alone",
			errJobFault, h.machine.config.Name)
	}
	r := &a.record
	r.Notice, r.Cwd, r.Stdout, r.Stderr, r.Join = time.Duration(p.GetNoticeNs()), p.GetCwd(), p.GetStdout(),
		p.GetStderr(), p.GetJoinOutput()
	r.IO, r.Boxed = h.machine.dirs.ClaimIO(h.id), h.machine.sandboxed
	r.OwnTemp = r.Boxed && !usesHostTemp(p)
	r.Bounds, r.Scripts = meter.LimitsOf(p.GetBounds()), h.siteScripts().newPrologueContext(p)
	if len(p.GetSecrets()) > 0 && !r.Boxed {
		return fmt.Errorf("%w: tasks of %s run without a sandbox, where secrets have no place", roost.Unavailable,
			h.machine.config.Name)
	}
	r.Walltime, r.Expected, r.Once = time.Duration(p.GetWalltimeNs()), time.Duration(p.GetExpectedNs()), p.GetOnce()
	r.Priority = min(max(p.GetPriority(), roost.MinPriority), roost.MaxPriority)
	r.Interactive, r.PBS, r.Slurm = p.GetInteractive(), isQsubJob(p), p.GetSlurm().GetId()
	if service := p.GetService(); service != nil {
		r.Service = encodeReport(service)
	}
	if policy := p.GetCheckpoint(); policy != nil {
		a.checkpoint.policy = policy
		r.Policy, r.Next = encodeReport(policy), policy.GetNext()
	}
	if err := h.dirs.prepareIO(r.IO); err != nil {
		return err
	}
	if p.GetScratch() || r.OwnTemp || p.GetContainer().GetWritable() {
		if err := h.prepareBase(a); err != nil {
			return err
		}
	}
	if err := h.writeHosts(a); err != nil {
		return err
	}
	if r.Interactive {
		return h.dirs.prepareTerminal(filepath.Join(r.IO, terminalName))
	}
	if len(p.GetScript()) > 0 {
		return h.dirs.writeFile(a.ScriptPath(), string(p.GetScript()), 0o500)
	}
	return nil
}

// isSlotUser reports whether the claim's tasks run as a slot user.
func (h *Runner) isSlotUser() bool {
	return h.file.Rights != nil && h.file.Rights.UID != h.file.UID
}

// prepareBase makes the directory for the attempt's own files, with a scratch directory
// in it if it needs one.
func (h launcher) prepareBase(a *Attempt) error {
	agent, err := h.dirs.userAgent()
	if err != nil {
		return err
	}
	a.agent = agent
	r := &a.record
	if r.Base, err = h.dirs.makeBase(); err != nil || !a.program.GetScratch() {
		return err
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

// launchAttempt tells the starter to run the attempt, whose input is there.
func (h launcher) launchAttempt(a *Attempt) error {
	if h.starter == nil {
		return fmt.Errorf("%w: there is no starter", roost.Unavailable)
	}
	restores := a.restoresProcesses()
	if restores {
		if err := h.checkpointer().unpackImage(a); err != nil {
			return err
		}
	} else if a.restoresImage() {
		if err := h.checkpointer().restoreSelfCheckpoint(a); err != nil {
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
	secrets, variables, err := a.takeSecrets()
	if err != nil {
		return err
	}
	a.record.Origin = meter.NewBaseline(h.group, h.baseline)
	if err := writeAttempt(h.attemptFile, &a.record); err != nil {
		return err
	}
	order := h.startCmd(a)
	order.Secrets, order.Environment = secrets, withVariables(order.Environment, variables)
	if restores {
		order.Restore = h.machine.checkpoints.restoreCommand(a)
	}
	a.program = &wire.Program{Executable: order.Executable, Stdin: a.program.GetStdin()} // for the words of a failure
	close(a.launchDone)
	h.measureFrom(a, a.record.Origin)
	tasktrace.Mark(tasktrace.Prepared, tasktrace.Task{Job: a.ref.Job, Index: a.ref.Index, Attempt: a.ref.Number})
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
func (h launcher) startCmd(a *Attempt) starterclient.StartCmd {
	p, r := a.program, &a.record
	arguments := append(make([]string, 0, len(p.GetArguments())+3), p.GetContainer().GetEntrypoint()...)
	arguments = append(arguments, resolveInterpreter(p)...)
	if len(p.GetScript()) > 0 || p.GetScriptFollows() {
		arguments = append(arguments, a.sandboxPath(a.ScriptPath()))
	}
	o := starterclient.StartCmd{
		Attempt: a.ref, Executable: arguments[0],
		Arguments:   h.fillPorts(append(arguments, programTexts(p.GetArguments())...)),
		Environment: h.environment(a), Cwd: a.sandboxPath(r.Cwd), Stdin: p.GetStdin(), Stdout: r.Stdout,
		Stderr: r.Stderr, Join: r.Join,
		Umask: p.GetUmask(), UID: h.cred.UID, GID: h.cred.GID, Groups: h.cred.Groups, Walltime: p.GetWalltimeNs(),
		Notice: p.GetNoticeNs(),
		IO:     r.IO, Sandbox: h.sandboxOf(a), Append: a.restoresImage(), OOMScore: h.oomScore(),
		Limits: r.Bounds.PerProcess(), Sockets: h.sockets(),
		AppendFiles: p.GetSlurm().GetAppendOutput(), EndSignal: endSignal(p.GetSlurm()),
	}
	if p.GetMpi() != nil {
		o.Arguments = h.ranksCommand(a, o.Arguments)
		o.Executable = o.Arguments[0]
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

// endSignal is the signal that a job of sbatch gets before its walltime ends.
func endSignal(s *wire.SlurmProgram) starterclient.EndSignal {
	if s.GetSignal() > 64 || s.GetSignalBeforeNs() < 0 {
		return starterclient.EndSignal{}
	}
	return starterclient.EndSignal{Signal: s.GetSignal(), Before: s.GetSignalBeforeNs(),
		ProgramOnly: s.GetSignalScript()}
}

// resolveInterpreter returns the executable, or of a script what its first line names.
// All that follows there is one word, as in execve(2). The kernel is not asked to read
// that line, because it would want a directory from which programs may be run.
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
func (h launcher) environment(a *Attempt) []string {
	own := []string{
		"ROOST_NODE=" + h.machine.config.Name,
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
	given := containerEnvironment(a.program, h.fillPorts(programTexts(a.program.GetEnvironment())))
	if a.container.driver != "" {
		given = withSearchPaths(given, gpudriver.Variables())
	}
	own = append(own, h.portVariables()...)
	if isQsubJob(a.program) {
		own = append(own, h.pbsVariables(a)...)
	}
	if p := a.program; p.GetSlurm() != nil {
		own = append(own, slurmVariables(h.machine.config.Name, p.GetNodeFile(), time.Now(), a.record.Walltime,
			len(h.file.gpuShares()))...)
	}
	own = append(own, hostFileVariables(a, given)...)
	own = append(own, networkVariables(a.program.GetMpiNetwork(), given, "/sys")...)
	own = append(own, h.machine.gpus.Environment(h.file.gpuShares())...)
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

// isQsubJob reports whether a program is a job of qsub: none is without its id. A job of
// sbatch may have that of the job in which it was submitted.
func isQsubJob(p *wire.Program) bool {
	return p.GetSlurm() == nil && setsVariable(programTexts(p.GetEnvironment()), "PBS_JOBID")
}

// pbsVariables are further variables of jobs of qsub (OpenPBS, "Environment of a job").
// They are a number that only this attempt's processes share, and where they are, if
// that is a directory of their own.
func (h launcher) pbsVariables(a *Attempt) []string {
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
func (h *Runner) removeAttemptFiles(a *Attempt) {
	a.closeFiles()
	h.containerizer().release(a)
	if a.checkpoint.mayBeStaged {
		h.machine.checkpoints.cleanRestore(a)
	}
	if a.restoresImage() { // and has not come so far that it was unpacked
		h.machine.checkpoints.images.Remove(h.checkpointer().imageKey(a, a.program.GetRestore()))
	}
	if t := a.checkpoint.unstored; t != nil {
		h.machine.checkpoints.deleteImage(h.file.Schedd, t)
	}
	h.machine.gpus.RemoveAttempt(h.id)
	for _, err := range []error{h.dirs.emptyBase(), h.dirs.emptyIO()} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			h.machine.log.Warn("cannot clean up", "attempt", a.Label(), "err", err)
		}
	}
}
