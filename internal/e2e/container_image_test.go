package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/master"
)

// imageScript makes an archive as docker save does, with a shell and the name of a
// colour.
const imageScript = `set -e
rm -rf root layer.tar
for p in /bin/sh /bin/cat; do
  for f in $p $(ldd $p | grep -o '/[^ ]*'); do mkdir -p root${f%/*}; cp $f root$f; done
done
echo 'from the image' >root/name
tar -C root -cf layer.tar .
cat >config.json <<END
{"architecture": "$(dpkg --print-architecture)", "os": "linux", "config": {"Env": ["PATH=/bin", "COLOR=$1"],
 "Entrypoint": ["/bin/sh", "-c", "echo entered; exec \"\$0\" \"\$@\""]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$(sha256sum layer.tar | cut -d ' ' -f 1)"]}}
END
echo '[{"Config": "config.json", "RepoTags": ["test:1"], "Layers": ["layer.tar"]}]' >manifest.json
tar -cf $1.tar manifest.json config.json layer.tar
`

// containerPool is a pool with a checkpoint server, and a user's directory.
type containerPool struct {
	*Pool
	t    *testing.T
	home string
}

// write writes a job file, and returns its path.
func (p *containerPool) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.home, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// makeImage makes the archive blue.tar, whatever its image says.
func (p *containerPool) makeImage(color string) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "sh", p.write("image.sh", imageScript), color)
	cmd.Dir = p.home
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Rename(p.home+"/"+color+".tar", p.home+"/image.tar"); err != nil {
		p.t.Fatal(err)
	}
}

// expect runs a command, and checks what it prints and how it ends.
func (p *containerPool) expect(want string, code int, args ...string) {
	p.t.Helper()
	stdout, stderr, got := p.Command(p.t.Context(), args...)
	if got != code || !strings.Contains(stdout+stderr, want) {
		p.t.Errorf("roost %s ended with %d, want %d and %q: %s%s", strings.Join(args, " "), got, code, want, stdout,
			stderr)
	}
}

// TestContainerImage: a task sees the files of the image that its job meant when it was
// submitted.
func TestContainerImage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root mounts images")
	}
	p := &containerPool{t: t, home: t.TempDir(), Pool: nodePool(t, &config.Node{
		Images: &config.CheckpointServerSettings{}, Startds: twoNodes()})}
	p.makeImage("blue")
	archive := "docker-archive:" + p.home + "/image.tar"
	p.expect("COLOR=blue", 0, "image", "inspect", archive)
	p.expect("roost image pull IMAGE puts one into the pool", 0, "image", "list")
	head := "  image = \"" + archive + "\"\n  directory = \"" + p.home + "\"\n  cpus = 0.1\n  memory = \"16MiB\"\n"
	p.write("home", "at home")
	job := p.write("job.hcl", "job \"image\" {\n"+head+`  script = <<-END
    read text </name
    echo "$COLOR $text, $(cat home)"
    test -e /etc/debian_version || echo no machine
  END
}
`)
	p.mustRun(t, "submit", job)
	p.mustRun(t, "wait", "1")
	p.expect("blue from the image, at home\nno machine\n", 0, "logs", "1")
	p.expect("sha256:", 0, "image", "list")

	later := p.write("later.hcl", "job \"later\" {\n"+head+"  image_entrypoint = true\n"+
		"  command = [\"/bin/sh\", \"-c\", \"echo $COLOR\"]\n}\n")
	p.mustRun(t, "submit", "--hold", later)
	p.makeImage("green")
	p.mustRun(t, "submit", job)
	p.mustRun(t, "wait", "3")
	p.expect("green from the image, at home\n", 0, "logs", "3")
	p.mustRun(t, "release", "2")
	p.mustRun(t, "wait", "2")
	p.expect("entered\nblue\n", 0, "logs", "2")

	p.checkResume(head)
	p.checkProgress(head, archive)
	missing := p.write("missing.hcl",
		"job \"missing\" {\n  image = \"docker-archive:none.tar\"\n  command = [\"true\"]\n}\n")
	p.expect("none.tar", 66, "submit", missing)
	p.expect("did you mean: roost image pull", 64, "image", "pul", archive)
	p.expect(`"blue" is no digest; roost image list shows them`, 64, "image", "rm", "blue")
}

// checkProgress has a machine wait for an image whose server does not answer. The words
// about its task say so, until the server answers again.
func (p *containerPool) checkProgress(head, archive string) {
	p.t.Helper()
	p.makeImage("red")
	p.mustRun(p.t, "submit", "--hold", p.write("red.hcl", "job \"red\" {\n"+head+"  script = \"cat /name\"\n}\n"))
	p.expect("image       "+archive+", pinned to ", 0, "show", "@red")
	state, _, err := master.ReadState(p.Dir)
	if err != nil {
		p.t.Fatal(err)
	}
	at := slices.IndexFunc(state.Daemons, func(d master.DaemonState) bool { return d.Role == "checkpoint-server" })
	if at < 0 {
		p.t.Fatalf("no checkpoint server among %+v", state.Daemons)
	}
	server := state.Daemons[at].PID
	if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
	defer syscall.Kill(server, syscall.SIGCONT)
	p.mustRun(p.t, "release", "@red")
	p.awaitOutput(p.t, "and waits for its container image: ", "why", "@red")
	p.expect("transfer    container image: ", 0, "show", "@red")
	if err := syscall.Kill(server, syscall.SIGCONT); err != nil {
		p.t.Fatal(err)
	}
	p.awaitSuccess(p.t, "red")
	if text, _, _ := p.Command(p.t.Context(), "show", "@red"); strings.Contains(text, "transfer") {
		p.t.Errorf("after its end the task has a transfer: %s", text)
	}
}

// checkResume holds a task in an image, which leaves with a checkpoint, and releases it.
// It goes on upon the same image, with the file of it that it had open.
func (p *containerPool) checkResume(head string) {
	p.t.Helper()
	job := p.write("counts.hcl", "job \"counts\" {\n"+head+`  script = <<-END
    exec 3</name
    n=0
    echo up
    until [ -e go ]; do n=$((n+1)); echo $n >count; done
    read text <&3
    echo "$text"
  END
}
`)
	ads, _, _ := p.Command(p.t.Context(), "ads", "--constraint", "HasCheckpoint")
	if !strings.Contains(ads, "n1") {
		p.t.Logf("not tested: this machine takes no checkpoints: %s", ads)
		return
	}
	p.mustRun(p.t, "submit", job)
	p.awaitOutput(p.t, "up", "logs", "@counts")
	p.mustRun(p.t, "hold", "@counts")
	p.awaitOutput(p.t, "held", "jobs", "@counts")
	p.expect("checkpoint 1", 0, "show", "@counts")
	p.write("go", "")
	p.mustRun(p.t, "release", "@counts")
	p.awaitSuccess(p.t, "counts")
	p.expect("up\nfrom the image\n", 0, "logs", "@counts")
	p.expect("from checkpoint 1 of attempt 1", 0, "show", "@counts")
}
