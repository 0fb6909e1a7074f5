package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/sitescript"
	"github.com/roost-batch/roost/internal/wire"
)

// OpenScripts prepares to contain the scripts of a startd, and ends those that an earlier
// start of it has left. It is nil where none are configured. A user who does not exist is
// an error of kind roost.BadConfig.
func OpenScripts(own *config.StartdSettings, log *slog.Logger) (*sitescript.Groups, error) {
	scripts := &own.Scripts
	if scripts.Prologue+scripts.Epilogue == "" {
		return nil, nil
	}
	if scripts.User != "" && scripts.User != config.ScriptUserJob {
		if _, err := sitescript.UserCredential(scripts.User); err != nil {
			return nil, fmt.Errorf("startd %s: scripts: user: %w", own.Name, err)
		}
	}
	groups, err := sitescript.OpenGroups(absoluteDir(own))
	if err != nil {
		log.Error("processes of an earlier prologue or epilogue are left", "err", err)
	}
	return groups, nil
}

// prologueContext are what the machine's scripts are told of an attempt.
type prologueContext struct {
	ID      string `json:",omitempty"` // as PBS writes it
	User    string `json:",omitempty"`
	Group   string `json:",omitempty"`
	Queue   string `json:",omitempty"`
	Account string `json:",omitempty"`
	Asked   string `json:",omitempty"` // as of -l
}

// scriptProgress is how far the machine's scripts have come with an attempt.
type scriptProgress struct {
	prologueDone chan struct{} // closed when the prologue has ended; nil: it was not begun
	mayStart     bool          // and the attempt may begin
	cancel       context.CancelFunc
}

// siteScripts is the runner of a claim as far as it runs the machine's own scripts
// around an attempt. Its state is that of the attempt (scriptProgress).
type siteScripts struct{ *Runner }

func (h *Runner) siteScripts() siteScripts { return siteScripts{h} }

// newPrologueContext collects what scripts are told; nothing where there are none.
func (h siteScripts) newPrologueContext(p *wire.Program) prologueContext {
	if own := &h.machine.config.Scripts; own.Prologue+own.Epilogue == "" {
		return prologueContext{}
	}
	group := strconv.FormatUint(uint64(h.cred.GID), 10)
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	r := h.file.Resources
	asked := fmt.Sprintf("ncpus=%v,mem=%dkb", r.CPU, r.Memory/roost.KiB)
	if r.GPUs > 0 {
		asked += fmt.Sprintf(",ngpus=%d", r.GPUs)
	}
	if w := time.Duration(p.GetWalltimeNs()); w > 0 {
		asked += ",walltime=" + formatHMS(w)
	}
	return prologueContext{ID: p.GetPbsId(), User: p.GetUser(), Group: group, Queue: p.GetQueue(),
		Account: p.GetAccount(), Asked: asked}
}

// formatHMS is a length of time as PBS writes it.
func formatHMS(d time.Duration) string {
	s := int64(d / time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// errPrologueRefused is the answer of a prologue that will not have the job.
var errPrologueRefused = errors.New("the machine's prologue refused the job")

// startPrologue begins the machine's prologue for an attempt whose input is there. It
// reports whether the attempt has to wait for it. From then on the epilogue is owed.
func (h siteScripts) startPrologue(a *Attempt) bool {
	own, s := &h.machine.config.Scripts, &a.scripts
	if own.Prologue+own.Epilogue == "" || s.mayStart {
		return false
	}
	a.record.Owes = own.Epilogue != ""
	if own.Prologue == "" {
		s.mayStart = true
		return false
	}
	if s.prologueDone != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), own.Within)
	begun := make(chan struct{})
	s.prologueDone, s.cancel = begun, cancel
	r, rights := a.record.Scripts, h.scriptCredential()
	arguments, environment := []string{cmp.Or(r.ID, a.id.Task.String()), r.User, r.Group, a.name, r.Asked, r.Queue,
		r.Account}, h.scriptEnvironment(a)
	go func() {
		defer cancel()
		code, err := h.machine.runScript(ctx, own.Prologue, rights, arguments, environment)
		if code == 1 { // others have it run elsewhere (OpenPBS, "Prologue exit values")
			err = fmt.Errorf("%w: %s", errPrologueRefused, strings.TrimPrefix(err.Error(), "exit status 1: "))
		}
		close(begun)
		h.queue.Put(prologueDone{a.id, err})
	}()
	return true
}

// onPrologueDone begins the attempt, or ends it.
func (h siteScripts) onPrologueDone(o prologueDone) {
	if !h.hasOpenAttempt(o.id) {
		return
	}
	a := h.attempt
	switch {
	case o.err == nil:
		a.scripts.mayStart = true
		h.startPrepared(a)
	case errors.Is(o.err, errPrologueRefused):
		h.machine.log.Warn("the prologue refused a job", "attempt", a.Label(), "err", o.err)
		h.onExit(a, &wire.ExitStatus{Cause: wire.Cause_CAUSE_REFUSED, Code: 1, Reason: o.err.Error()})
	default:
		h.failAttempt(a, fmt.Errorf("the machine's prologue has failed: %w", o.err))
	}
}

// startEpilogue begins the machine's epilogue for an attempt that has ended. It reports
// whether the end is to be reported after it. It is run once the prologue was begun,
// however the attempt ended; and again after a restart of the startd that came before it
// was noted.
func (h siteScripts) startEpilogue(a *Attempt) bool {
	own := &h.machine.config.Scripts
	if !a.record.Owes || own.Epilogue == "" {
		return false
	}
	s := &a.scripts
	if s.cancel != nil {
		s.cancel()
	}
	r, x, rights := a.record.Scripts, a.recordedExit.Status, h.scriptCredential()
	code := int64(x.GetCode())
	if x.GetSignal() != 0 {
		code = 256 + int64(x.GetSignal())
	}
	used := fmt.Sprintf("cput=%s,mem=%dkb,walltime=%s", formatHMS(time.Duration(x.GetUserCpu()+x.GetSystemCpu())),
		x.GetUsage().GetPeakMemory()/int64(roost.KiB), formatHMS(time.Duration(x.GetWall())))
	arguments := []string{
		cmp.Or(r.ID, a.id.Task.String()), r.User, r.Group, a.name, "0", r.Asked, used, r.Queue, r.Account,
		strconv.FormatInt(code, 10),
	}
	environment := append(h.scriptEnvironment(a), "ROOST_EXIT_CODE="+strconv.Itoa(int(x.GetCode())),
		"ROOST_EXIT_SIGNAL="+strconv.Itoa(int(x.GetSignal())),
		"ROOST_EXIT_REASON="+sitescript.OneLine(x.GetReason()))
	go func() {
		if s.prologueDone != nil {
			<-s.prologueDone
		}
		ctx, cancel := context.WithTimeout(context.Background(), own.Within)
		defer cancel()
		_, err := h.machine.runScript(ctx, own.Epilogue, rights, arguments, environment)
		h.queue.Put(epilogueDone{a.id, err})
	}()
	return true
}

// onEpilogueDone tells the end of the attempt. That an epilogue failed is the
// administrator's affair and not the job's.
func (h siteScripts) onEpilogueDone(o epilogueDone) {
	if !h.hasAttempt(o.id) {
		return
	}
	if o.err != nil {
		h.machine.log.Error("the epilogue has failed", "attempt", h.attempt.Label(), "err", o.err)
	}
	h.attempt.record.Owes = false
	h.writeRecord(h.attempt)
	h.reportExit(h.attempt)
}

// scriptEnvironment is made from scratch: of what the job says nothing comes to root.
func (h siteScripts) scriptEnvironment(a *Attempt) []string {
	r := a.record.Scripts
	all := append(sitescript.BaseEnvironment(),
		"PBS_JOBID="+cmp.Or(r.ID, a.id.Task.String()), "ROOST_TASK_ID="+a.id.Task.String(),
		fmt.Sprintf("ROOST_ATTEMPT=%d", a.ref.Number), "ROOST_NODE="+h.machine.config.Name,
		fmt.Sprintf("ROOST_UID=%d", h.cred.UID), fmt.Sprintf("ROOST_GID=%d", h.cred.GID),
		"ROOST_SCRATCH="+a.record.Scratch)
	return append(all, h.machine.gpus.Environment(h.file.gpuShares())...)
}

// scriptCredential returns whose rights the machine's scripts have around an attempt. Nil
// stands for those of the startd.
func (h siteScripts) scriptCredential() func() (*syscall.Credential, error) {
	name, job := h.machine.config.Scripts.User, h.cred
	return func() (*syscall.Credential, error) {
		switch {
		case name == "":
			return nil, nil
		case name != config.ScriptUserJob:
			return sitescript.UserCredential(name)
		case os.Geteuid() != 0: // the tasks have the rights of the startd, too
			return nil, nil
		}
		return &syscall.Credential{Uid: job.UID, Gid: job.GID, Groups: job.Groups}, nil
	}
}

// maxScriptText bounds what is kept of what a script prints.
const maxScriptText = 4 << 10

// runScript runs one of the machine's scripts to its end, or for as long as it may take.
// Then it and all that it has started are killed. What it prints is in the error, or
// else in the log.
func (m *Machine) runScript(ctx context.Context, path string, rights func() (*syscall.Credential, error),
	arguments, environment []string) (code int, err error) {
	credential, err := rights()
	if err != nil {
		return -1, fmt.Errorf("%s: its user: %w", path, err)
	}
	out, err := sitescript.Run(ctx, sitescript.Script{Path: path, Arguments: arguments, Environment: environment,
		Credential: credential,
		MaxOutput:  maxScriptText, Merged: true, Lingers: true, Groups: m.scripts})
	output := sitescript.OneLine(strings.TrimSpace(string(out.Text)))
	switch {
	case err == nil:
		m.log.Info("a script of the machine was run", "script", path, "job", arguments[0], "said", output)
		return 0, nil
	case ctx.Err() != nil:
		err = fmt.Errorf("%s was not done in %v", path, m.config.Scripts.Within)
	}
	code = sitescript.ExitCode(err)
	if output != "" {
		err = fmt.Errorf("%w: %s", err, output)
	}
	return code, err
}
