package doctor

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
)

// TestDoctorNamesTheSources: each is a line, and what is to be done about one that is
// broken is its cure.
func TestDoctorNamesTheSources(t *testing.T) {
	c := &frame.Invocation{App: &frame.App{Env: []string{"ROOST_DIR=" + (&clitest.FakeGuard{}).Serve(t)}},
		Context: t.Context(),
		Flags:   ucli.NewContext(nil, flag.NewFlagSet("doctor", flag.ContinueOnError), nil)}
	want := []checkResult{
		{"owner", levelWarning, "input devices: /dev/input/event3: permission denied", "run roost guard as root"},
		{"owner", levelOK, "terminals: 3, of which the kernel tells at once", ""},
		{"owner", levelOK, "battery: none", ""},
	}
	if got := examineGuard(c, nil); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestDoctorReadsFiles shows what doctor reports of files of people and of a silent
// guard; see testdata/doctor.golden.
func TestDoctorReadsFiles(t *testing.T) {
	var b strings.Builder
	for _, tt := range []struct{ what, startd, owner string }{
		{"a mistake in the owner's file", `policy = "desktop"`,
			"start_after = \"10m\"\nhour = [\"Mon-Fri 08:00-18:00\"]\nstart = \"KeyboardIdl > 60\"\n"},
		{"an owner's file that is no file of settings", `policy = "desktop"`, "cpus = \n"},
		{"an expression that is never true", `policy = "desktop"`, "start = \"MY.ClockMin > 1440\"\n"},
		{"a doubt in it", `policy = "desktop"`, "cpus = 2\nmemory = \"4GiB\"\nstart = \"TARGET.IsNice\"\n"},
		{"nothing said", `policy = "desktop"`, ""},
		{"an owner's file that nobody heeds", ``, "cpus = 2\n"},
		{"a doubt in the node file", "policy = \"desktop\"\n  start = \"IsNice && TARGET.Walltime > 0\"", ""},
		{"a rank, which decides nothing", "rank = \"TARGET.JobPrio\"", ""},
		{"an unknown attribute in the node file", "policy = \"desktop\"\n  suspend = \"MY.KeybordIdle < 60\"", ""},
		{"an expression in the node file that is never true",
			"policy = \"desktop\"\n  continue = \"State == \\\"Clamed\\\"\"", ""},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "owner.hcl")
		text := fmt.Sprintf("name = \"n1\"\ndir = %q\ncollector {}\nstartd {\n  %s\n}\nowner { file = %q }\n",
			dir, tt.startd, file)
		if err := os.MkdirAll(filepath.Join(dir, "etc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "etc", "node.hcl"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if tt.owner != "" {
			if err := os.WriteFile(file, []byte(tt.owner), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		a, out, _ := newDoctorApp(t, dir)
		c := &frame.Invocation{App: a, Context: t.Context(),
			Flags: ucli.NewContext(nil, flag.NewFlagSet("doctor", flag.ContinueOnError), nil)}
		findings, n := examineFiles(c)
		printFindings(c, append(findings, examineGuard(c, n)...))
		fmt.Fprintf(&b, "# %s\n%s\n", tt.what, strings.ReplaceAll(out.String(), dir, "DIR"))
	}
	clitest.CompareGolden(t, "doctor", b.String())
}

// TestDoctorKnowsARefusedCertificate holds that doctor explains what a TLS alert means
// for a node.
func TestDoctorKnowsARefusedCertificate(t *testing.T) {
	f := daemonFinding("collector", false,
		`10.0.0.1:9701: connection error: desc = "error reading server preface: remote error: tls: bad certificate"`)
	if f.Level != levelError || !strings.Contains(f.Hint, "roost token list") {
		t.Errorf("got %+v", f)
	}
	if f := daemonFinding("collector", false, "10.0.0.1:9701 does not answer"); !strings.Contains(f.Hint,
		"collector.log") {
		t.Errorf("one that is down: got %+v", f)
	}
}

// TestDoctorOnAccounts: as whom tasks run, and who else has the numbers.
func TestDoctorOnAccounts(t *testing.T) {
	etc := t.TempDir()
	if err := os.WriteFile(filepath.Join(etc, "subuid"), []byte("ann:200000:65536\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		accounts config.TaskAccounts
		want     string
	}{
		{config.TaskAccounts{Users: config.AnyUser},
			"ok n1: tasks that come from other nodes run as their users, whoever they are: the word of every submit " +
				"node of the pool counts\n"},
		{
			config.TaskAccounts{Users: config.DirectoryUser, Trust: []config.SubmitNodeTrust{{Node: "login*",
				Users: []string{"*", "33000-33999", "root", "no-such-user"}}}},
			"ok n1: tasks that come from other nodes run as their users, if this machine's directory knows them; " +
				"whom 1 trust blocks name run as themselves\n" +
				"warn n1: trust \"login*\" names no-such-user, whom this machine's directory does not know\n",
		},
		{
			config.TaskAccounts{Users: config.SlotUser, SlotUIDs: account.IDRange{First: 265_000, Last: 265_999}},
			"ok n1: tasks that come from other nodes run as slot users, 265000-265999\n" +
				"fail n1: slot users 265000-265999: " + etc +
				"/subuid gives 200000-265535 to ann, whose files and processes they could reach\n",
		},
		{config.TaskAccounts{Users: config.SlotUser, SlotUIDs: account.IDRange{First: 265_536, Last: 265_999}},
			"ok n1: tasks that come from other nodes run as slot users, 265536-265999\n"},
	} {
		got := ""
		for _, f := range examineAccountsOf(&config.StartdSettings{Name: "n1", Accounts: tt.accounts}, etc) {
			got += fmt.Sprintln(f.Level, f.Text)
		}
		if got != tt.want {
			t.Errorf("%+v: got\n%swant\n%s", tt.accounts, got, tt.want)
		}
	}
}
