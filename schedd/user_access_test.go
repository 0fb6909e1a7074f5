package schedd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// intruderSocket names the environment variable that makes the test binary another user's
// command. The command asks the schedd there for everything it should not get, and prints
// the answers.
const intruderSocket = "ROOST_TEST_STRANGER"

// intruderUID is a uid that is neither root's nor the schedd's.
const intruderUID = 54321

func TestMain(m *testing.M) {
	if socket := os.Getenv(intruderSocket); socket != "" {
		json.NewEncoder(os.Stdout).Encode(runIntruder(socket))
		return
	}
	os.Exit(m.Run())
}

// intruderResults is what a stranger got for job 1.
type intruderResults struct {
	Ad          string
	Rows        int // of those whose environment holds the secret
	Hold, Logs  roost.ErrorKind
	Error       string
	OwnJobTaken bool
}

func runIntruder(socket string) (a intruderResults) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := rpc.Dial(socket, nil, peer.Schedd)
	if err != nil {
		return intruderResults{Error: err.Error()}
	}
	defer conn.Close()
	c := wire.NewScheddClient(conn)
	first := &wire.Selection{Selectors: []string{"1"}}
	rows, err := receive(c.Query(ctx, &wire.QueryRequest{Selection: first, Ads: true}))
	if err != nil || len(rows) != 1 {
		return intruderResults{Error: fmt.Sprint(rows, err)}
	}
	a.Ad = rows[0].GetAd()
	rows, err = receive(c.Query(ctx,
		&wire.QueryRequest{Selection: &wire.Selection{Constraint: `Environment[0] == "TOKEN=hunter2"`}}))
	if err != nil {
		a.Error = err.Error()
	}
	a.Rows = len(rows)
	act, err := c.Act(ctx, &wire.ActRequest{Verb: wire.ActRequest_HOLD, Selection: first})
	if err != nil || len(act.GetResults()) != 1 {
		return intruderResults{Error: fmt.Sprint(act, err)}
	}
	a.Hold = roost.ErrorKind(act.GetResults()[0].GetKind())
	_, err = receive(c.Logs(ctx, &wire.LogsRequest{Id: "1"}))
	a.Logs = rpc.KindOf(err)
	reply, err := c.Submit(ctx, &wire.SubmitRequest{Key: "secret",
		Jobs: []*wire.JobSpec{{Ad: `[Cmd = "/bin/true"]`, Count: 1}}})
	a.OwnJobTaken = err == nil && !reply.GetRepeatedKey()
	return a
}

// TestOtherUsersRefused checks that another user may not change a job or read its output.
// The other user does not see the owner's private attributes, and has other submit keys.
func TestOtherUsersRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: NOT ROOT, so there is no other user to be")
	}
	p := newPool(t)
	p.submit("secret", 1, `Environment = {"TOKEN=hunter2"}; Arguments = {"hunter2"}; Script = "echo hunter2"`)
	a := receiveNext(t, p.startd.activated, "an attempt").GetAttempt()
	p.startd.exited(a, &wire.ExitStatus{}, "hunter2\n")
	p.await("1", "completed 1")
	program := filepath.Join(p.node.Dir, "stranger")
	if err := copyProgram(program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env, cmd.Dir, cmd.Stderr = []string{intruderSocket + "=" + p.node.Schedd.Socket}, "/", os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: intruderUID, Gid: intruderUID}}
	out, err := cmd.Output()
	var got intruderResults
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil || got.Error != "" {
		t.Fatal(err, got.Error)
	}
	if strings.Contains(got.Ad, "hunter2") || !strings.Contains(got.Ad, "Cmd") {
		t.Errorf("it was shown %s", got.Ad)
	}
	if got.Rows != 0 || got.Hold != roost.PermissionDenied || got.Logs != roost.PermissionDenied || !got.OwnJobTaken {
		t.Errorf("got %+v", got)
	}
	if rows := p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{"1"}}, Ads: true,
		History: true}); !strings.Contains(rows[0].GetAd(), "hunter2") {
		t.Errorf("the owner was shown %s", rows[0].GetAd())
	}
}

// copyProgram puts this test binary where another user can run it.
func copyProgram(to string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, from); err != nil {
		return err
	}
	return f.Close()
}
