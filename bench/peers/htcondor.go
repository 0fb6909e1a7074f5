package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
)

// htcondorSystem is a pool of one host: the central manager, a schedd and a startd with
// 16 slots.
type htcondorSystem struct {
	*systemAgent
}

const condorConf = "/etc/condor/config.d/90-bench"

func (h *htcondorSystem) startSystem(ctx context.Context) error {
	text := configText("htcondor.conf")
	if !h.Stock {
		text += configText("htcondor-fast.conf")
	}
	if h.Cell > 0 {
		text += configText("htcondor-match.conf")
	}
	if err := os.WriteFile(condorConf, []byte(text), 0o644); err != nil {
		return err
	}
	if _, err := h.runAsAdmin(ctx, "sh", "-c", `cd /var && rm -rf log/condor/* spool/condor/* lib/condor/execute/* &&
		for d in /run/condor /run/lock/condor log/condor spool/condor lib/condor lib/condor/execute; do mkdir -p $d && chown condor:condor $d || exit 1; done
		chmod 755 lib/condor/execute`); err != nil {
		return err
	}
	if _, err := h.startDaemon("condor_master", "condor_master"); err != nil {
		return err
	}
	return pollUntil(ctx, 200*time.Millisecond, "HTCondor has no slots", func() bool {
		if _, err := h.runAsUser(ctx, h.listCommand()...); err != nil {
			return false
		}
		out, err := h.runAsUser(ctx, "condor_status", "-af", "Name")
		return err == nil && (h.Cell > 0 || strings.Count(out, "\n") > 0)
	})
}

func (h *htcondorSystem) stopSystem() {}

func (h *htcondorSystem) version(ctx context.Context) string {
	out, _ := h.runAsUser(ctx, "condor_version")
	if f := strings.Fields(out); len(f) > 1 {
		return f[1]
	}
	return "?"
}

// writeSubmitFile writes a submit description and returns the command that submits it.
func (h *htcondorSystem) writeSubmitFile(name, executable, arguments, more string, n int) ([]string, error) {
	text := fmt.Sprintf("executable = %s\narguments = %s\nshould_transfer_files = NO\n%squeue %d\n", executable,
		arguments, more, n)
	return []string{"condor_submit", "-terse", h.filePath(name)}, h.writeFile(name, text, 0o644)
}

func (h *htcondorSystem) submitJob(argv ...string) ([]string, error) {
	return h.submitArray(1, argv...)
}

func (h *htcondorSystem) submitArray(n int, argv ...string) ([]string, error) {
	return h.writeSubmitFile("run.sub", argv[0], strings.Join(argv[1:], " "), "", n)
}

func (h *htcondorSystem) submitHeld() string {
	argv, err := h.writeSubmitFile("held.sub", "/bin/true", "", "hold = True\n", 1)
	if err != nil {
		return "false"
	}
	return strings.Join(argv, " ")
}

func (h *htcondorSystem) submitHeldArray(ctx context.Context, n int) error {
	argv, err := h.writeSubmitFile("array.sub", "/bin/true", "", "hold = True\n", n)
	if err == nil {
		_, err = h.runAsUser(ctx, argv...)
	}
	return err
}

// submitHeldJobs submits from one process, through HTCondor's library for Python. Each
// job is a cluster of its own.
func (h *htcondorSystem) submitHeldJobs(ctx context.Context, n int) error {
	_, err := h.runAsUser(ctx, "python3", "-W", "ignore", "-c", fmt.Sprintf(
		`import htcondor
schedd = htcondor.Schedd()
job = htcondor.Submit("executable=/bin/true\nshould_transfer_files=NO\nhold=True\n")
for _ in range(%d): schedd.submit(job)`, n))
	return err
}

func (h *htcondorSystem) listCommand() []string {
	return []string{"condor_q", "-allusers", "-af", "ClusterId", "-limit", "1"}
}

func (h *htcondorSystem) clearQueue() []string { return []string{"condor_rm", "-all"} }

func (h *htcondorSystem) daemonRole(p gauge.ProcessStat) string {
	for prefix, role := range map[string]string{
		"condor_master": "master", "condor_shared_": "shared_port", "condor_collect": "collector",
		"condor_negotia": "negotiator", "condor_schedd": "schedd",
	} {
		if strings.HasPrefix(p.Command, prefix) {
			return role
		}
	}
	return ""
}

func (h *htcondorSystem) queueDaemon() string { return "schedd" }

func (h *htcondorSystem) restartDaemon(context.Context) error { return nil } // condor_master restarts it
