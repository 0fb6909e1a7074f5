package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/account"
)

var rewriteGolden = flag.Bool("rewrite", false, "rewrite testdata from what the code does")

// loadText loads text as node.hcl in a directory of its own, so that messages contain no
// other path.
func loadText(t *testing.T, text string) (*Node, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("node.hcl", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load("node.hcl")
}

// TestMistakes runs testdata/mistakes.txt, which has node files and the expected
// messages.
func TestMistakes(t *testing.T) {
	name, err := filepath.Abs("testdata/mistakes.txt")
	if err != nil {
		t.Fatal(err)
	}
	script, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(script.Files); i += 2 {
		t.Run(script.Files[i].Name, func(t *testing.T) {
			n, err := loadText(t, string(script.Files[i].Data))
			if err == nil {
				t.Fatalf("loaded: %+v", n)
			}
			if !errors.Is(err, roost.BadConfig) {
				t.Errorf("kind: got %v", err)
			}
			got := err.Error() + "\n"
			if *rewriteGolden {
				script.Files[i+1].Data = []byte(got)
			} else if want := string(script.Files[i+1].Data); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	if *rewriteGolden {
		if err := os.WriteFile(name, txtar.Format(script), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unclosed text", "name = \"n1\ncollector {}", "node.hcl:1:"},
		{"a variable", "collector {}\nname = host", "node.hcl:2:8: variables not allowed"},
		{"deep", strings.Repeat("[", 1e5), "nested more than 64 deep"},
		{"binary", "\x00\x01\x02\xff\xfe", "node.hcl:1:"},
		{"huge", strings.Repeat("# a comment\n", 1e5), "larger than 256KiB"},
		{"many mistakes", strings.Repeat("x {}\n", 50), "and 40 more mistakes"},
		{"a number without end", "collector {}\nstartd { cpus = 1e999999999 }", "+Inf is not a number of cores"},
		{"a long line", "collector {}\n" + strings.Repeat(" ", 5000) + "x = 1", "unknown setting"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadText(t, tt.text)
			if !errors.Is(err, roost.BadConfig) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
			if err != nil && len(err.Error()) > 8000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.hcl")); !errors.Is(err, roost.NoInput) {
		t.Errorf("a missing file: got %v", err)
	}
}

func TestMinimal(t *testing.T) {
	n, err := loadText(t, "collector {}\nnegotiator {}\nschedd {}\nstartd {}\n")
	if err != nil {
		t.Fatal(err)
	}
	if n.Dir != "/var/lib/roost" || n.Schedd.Socket != "unix:/run/roost/schedd.sock" || n.Schedd.SocketMode != 0o666 {
		t.Errorf("got %q, %q, %v", n.Dir, n.Schedd.Socket, n.Schedd.SocketMode)
	}
	if n.Name == "" || n.FileSystemDomain != n.Name || n.Startds[0].Name != n.Name {
		t.Errorf("got name %q, domain %q, startd %q", n.Name, n.FileSystemDomain, n.Startds[0].Name)
	}
	want := []string{"unix:/var/lib/roost/run/collector.sock"}
	if !reflect.DeepEqual(n.Collectors, want) {
		t.Errorf("got %v, want %v", n.Collectors, want)
	}
}

func TestPersonal(t *testing.T) {
	n, err := loadText(t, "dir = \"pool\"\ncollector {}\nnegotiator {}\nschedd {}\n")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(filepath.Dir(n.File), "pool")
	if n.Dir != dir || n.Schedd.Socket != "unix:"+dir+"/run/schedd.sock" || n.Schedd.SocketMode != 0o600 {
		t.Errorf("got %q, %q, %v; want below %q", n.Dir, n.Schedd.Socket, n.Schedd.SocketMode, dir)
	}
}

// fullNode returns a node without zero fields.
func fullNode() *Node {
	return &Node{
		Name: "n1", Pool: "lab ${x} \"q\"", Dir: "/srv/roost", FileSystemDomain: "lab",
		Collectors: []string{"10.0.0.1:9701"}, Negotiators: []string{"10.0.0.1:9702", "10.0.0.2:9702"},
		TLS: &TLSFiles{CA: "/etc/roost/ca.pem", Certificate: "/etc/roost/node.pem", Key: "/etc/roost/node.key"},
		Collector: &CollectorSettings{Listen: []string{"10.0.0.1:9701"},
			DNS: &DNSSettings{Listen: []string{"10.0.0.1:53"}, Domain: "lab.internal", Cell: "physics", Rate: 500}},
		Negotiator: &NegotiatorSettings{Listen: []string{"unix:/run/roost/n.sock", "10.0.0.1:9702"},
			Cycle: 1500 * time.Millisecond, Election: 500 * time.Millisecond},
		CellQueue: &CellQueueSettings{Listen: []string{"10.0.0.1:9726"}, Member: "10.0.0.1:9727",
			Members: []string{"10.0.0.1:9727", "10.0.0.2:9727", "10.0.0.3:9727"}, JobLease: time.Hour,
			KeepHistory: 90 * 24 * time.Hour, MaxQueued: 1000, MaxOfUser: 700,
			Trust: TrustList{{Node: "login*", Users: []string{"*"}}}},
		Schedd: &ScheddSettings{Socket: "unix:/run/roost/schedd.sock", SocketMode: 0o660, JobLease: time.Hour,
			KeepHistory: 90 * 24 * time.Hour,
			AllowRoot:   true, MaxQueued: 1000, MaxOfUser: 700, Dialect: roost.Torque, KeepCompleted: time.Minute,
			SubmitTo: SubmitToCell, Flock: []string{"physics"}, FlockWait: time.Minute,
			Notify: NotifySettings{Mail: "/usr/lib/sendmail", Hook: "/etc/roost/told", From: "roost@lab.example"},
			Filter: SubmitFilter{Program: "/etc/roost/submit-filter", Timeout: 2 * time.Second, User: "filter"},
			Hooks: JobHooks{Start: "/etc/roost/job-start", End: "/etc/roost/job-end", Timeout: 3 * time.Second,
				AtOnce: 4, User: "hooks"}},
		Accountant: &AccountantSettings{Listen: []string{"10.0.0.1:9623"}, Dir: "/var/lib/accounts",
			Database: "postgres://roost@db/accounting", ReconcileEvery: 2 * time.Hour},
		AccountantAt: "10.0.0.1:9623",
		Images: &CheckpointServerSettings{Listen: []string{"10.0.0.1:9704"}, Dir: "/srv/images",
			Max: 500 * roost.GiB, MaxFilesOfUser: 20 * roost.GiB, CheckpointsAtSubmitNode: true,
			Objects: &ObjectSettings{Endpoint: "https://s3.lab.example:9000", Bucket: "roost", Prefix: "pools/physics",
				Region: "lab", CredentialsFile: "/etc/roost/objects.credentials", CacheSize: 200 * roost.GiB,
				Max: 20 * roost.TiB}},
		ImageServer: "10.0.0.9:9704",
		ObjectStores: []ObjectStore{{Name: "lab", Endpoint: "http://s3.lab.example:9000", Region: "lab",
			Buckets: []string{"data", "results"}, Secret: "keys", PathStyle: true, Plain: true}},
		Authority:   &AuthoritySettings{Listen: []string{"10.0.0.1:9700"}, Dir: "/srv/authority"},
		AuthorityAt: "10.0.0.1:9700",
		Web: &WebSettings{Checkpoints: "/srv/checkpoints", OwnUnit: true,
			Listen: []string{"10.0.0.1:9780", "unix:/run/roost/web.sock"},
			Names:  []string{"pool.lab.example"}, URL: "https://roost.lab.example", User: "roost-web",
			Certificate: "/etc/roost/web.pem", Key: "/etc/roost/web.key",
			Providers: []OIDCProvider{{Name: "university", Title: "The University",
				Issuer: "https://sso.example.org/realms/science", Client: "roost", SecretFile: "/etc/roost/oidc.secret",
				Claim: "preferred_username", Accounts: "/etc/roost/oidc.accounts", Scopes: []string{"profile"},
				Authority: "/etc/roost/sso.pem", Local: true}},
			PAMService: "roost", PAMDir: "/etc/roost/pam.d"},
		Metrics: &MetricsSettings{Users: true, Collector: "10.0.0.1:9711", Negotiator: "10.0.0.1:9712",
			Schedd: "10.0.0.1:9713",
			Startd: "10.0.0.1:9714",
			Web:    "10.0.0.1:9724", Accountant: "10.0.0.1:9725", CheckpointServer: "10.0.0.1:9726",
			TokenFile: "/etc/roost/metrics.token", Names: []string{"n1.lab.example"}},
		Owner: OwnerFile{File: "/srv/owner.hcl"},
		Startds: []StartdSettings{{
			Name: "n1", Dir: "/srv/n1", Listen: []string{"10.0.0.1:9703"},
			Resources: roost.Resources{CPU: 2500, Memory: 3*roost.GiB + 1, Disk: 7 * roost.MiB,
				IO: roost.IORates{Disk: 500 << 20, Network: 1_250_000_000}},
			Start: "TARGET.Walltime < 3600", Rank: "TARGET.JobPrio",
			Attributes: map[string]string{"HasMatlab": "true", "Site": "\"east\""}, AllowRoot: true, CRIU: "/opt/criu",
			GPUs: GPUSettings{Library: "/opt/nvidia/libnvidia-ml.so.1", Use: []string{"0", "GPU-1f"},
				Exclusive: true},
			Limits: LimitSettings{Enforce: EnforceRequired, Sandbox: EnforceNever, CPU: true, Processes: 100,
				TaskDisk: 20 * roost.GiB, TaskFiles: 5000, TaskOutput: roost.MiB, Reclaim: roost.ReclaimMedium,
				ReclaimAfter: time.Minute, MemorySlack: 50, IO: roost.IORates{Disk: 20 << 20, Network: 12_500_000}},
			Layout: gpu.LayoutConfig{Shape: gpu.PinnedLayout, CoresPerGPU: 4, CPUUnits: gpu.OnePerMemoryNode},
			Queue:  NodeQueue{Length: 4, MaxWait: 10 * time.Minute, RunLimit: 8},
			Policy: OwnerPolicy{Preset: "desktop", Suspend: "KeyboardIdle < 30", Continue: "KeyboardIdle > 400",
				Preempt: "ActivityTimer > 600", Kill: "ActivityTimer > 60",
				StartAfter: 20 * time.Minute, ResumeAfter: 6 * time.Minute, LeaveAfter: time.Minute,
				Vacate: 5 * time.Minute},
			Scripts: AttemptScripts{Prologue: "/etc/roost/prologue", Epilogue: "/etc/roost/epilogue",
				Within: time.Minute, User: "job"},
			StopNotice: 20 * time.Second, PreemptionDelay: time.Minute, Ports: PortRange{10000, 19999}, Spares: new(3),
			Accounts: TaskAccounts{Guests: GuestSlots, Users: SlotUser, SlotUIDs: account.IDRange{First: 200_000,
				Last: 265_535},
				Trust: []SubmitNodeTrust{{Node: "login*", Users: []string{"ann", "33000-33999"}}}},
			Containers: ContainerSettings{Mounts: []string{"/data", "/software:ro"}, NoHome: true, Max: roost.GiB,
				Upload: 100 * roost.MiB, NoUpload: true},
			InputCache: InputCacheSettings{Max: 20 * roost.GiB, None: true},
			Pilot: &PilotSettings{Owner: roost.PilotOwner{User: "ada", Schedd: "login1"},
				Until:     time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
				PoolUntil: time.Date(2026, 11, 30, 12, 0, 3, 0, time.UTC), Provider: "cluster", Key: "r-1", Host: "c17",
				Idle: 5 * time.Minute, FirstIdle: 20 * time.Minute},
		}, {
			Name: "n2", Dir: "/srv/n2", Listen: []string{"unix:/run/roost/n2.sock"}, Start: "true", Rank: "0",
			GPUs:   GPUSettings{None: true},
			Limits: LimitSettings{Enforce: EnforceAuto, Sandbox: EnforceAuto, Processes: defaultProcesses},
			Layout: gpu.LayoutConfig{CPUUnits: 2}, Pin: true, Queue: NodeQueue{Auto: true},
			StopNotice: time.Second, PreemptionDelay: 30 * time.Second, Ports: PortRange{1024, 1087}, Spares: new(0),
			Accounts: TaskAccounts{Users: DirectoryUser},
		}},
	}
}

func TestWriteIsReadBack(t *testing.T) {
	want := fullNode()
	got, err := loadText(t, string(Write(want)))
	if err != nil {
		t.Fatalf("%v\n%s", err, Write(want))
	}
	want.File, want.Warnings = got.File, got.Warnings // everything has the default Rank
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v\nfrom\n%s", got, want, Write(want))
	}
	if again := Write(got); !bytes.Equal(again, Write(want)) {
		t.Errorf("written again:\n%s\nwant\n%s", again, Write(want))
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("collector {}\nname = \"n1\""))
	f.Add(Write(fullNode()))
	f.Add([]byte("startd \"a\" { cpus = 1e99999 }"))
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := parseNodeFile("node.hcl", text)
		if err != nil {
			if err.Error() == "" {
				t.Errorf("an error without text")
			}
			return
		}
		n.fillDefaults("/etc/roost", "host")
		once := Write(n)
		m, err := parseNodeFile("node.hcl", once)
		if err != nil {
			t.Fatalf("written as\n%s\n%v", once, err)
		}
		m.fillDefaults("/etc/roost", "host")
		if twice := Write(m); !bytes.Equal(once, twice) {
			t.Errorf("written as\n%s\nthen\n%s", once, twice)
		}
	})
}

// TestGuardAddress checks the address of the guard. The host's own pool has it in the
// system's run directory, another pool in its own directory.
func TestGuardAddress(t *testing.T) {
	for dir, want := range map[string]string{"/var/lib/roost": "unix:/run/roost/guard.sock",
		"/home/ann/pool": "unix:/home/ann/pool/run/guard.sock"} {
		if got := (&Node{Dir: dir}).GuardAddress(); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}
