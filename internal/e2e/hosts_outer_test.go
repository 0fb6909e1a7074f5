package e2e

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test of real batch systems takes long, and needs a Debian with them, which
// bench/peers/install.sh makes; scripts/pilots-beside.sh does both.
const (
	outerRootVariable   = "ROOST_OUTER_ROOT"   // the Debian
	outerOutageVariable = "ROOST_OUTER_OUTAGE" // how long the outer system's controller is down
	outerTasks          = 1000
	outerTimeout        = 10 * time.Minute
)

// outerPool is a pool whose user has an account on a batch system behind the router.
type outerPool struct {
	*pilotPool
	system      outerSystem
	first       int    // the process whose namespaces have the batch system
	settings    string // the file with the provider
	provisioner *exec.Cmd
	log         string // of all provisioners, one after the other
}

// TestOuterSystems has a user's provisioner get machines from Slurm, HTCondor and Grid
// Engine. These are behind a router, which lets only ssh in.
func TestOuterSystems(t *testing.T) {
	root := os.Getenv(outerRootVariable)
	if _, err := os.Stat(filepath.Join(root, "ready")); root == "" || err != nil {
		t.Skip("SKIPPED: " + outerRootVariable + " names no Debian with other batch systems (run " +
			"scripts/pilots-beside.sh, which takes half an hour); no pilots are tested in real ones")
	}
	for _, s := range []outerSystem{slurmOuter(), condorOuter(), gridEngineOuter()} {
		t.Run(s.kind, func(t *testing.T) {
			o := &outerPool{pilotPool: &pilotPool{&unjoinedHosts{T: t, net: newNetwork(t), dir: openDir(t),
				roost: program(t)}, ""}, system: s}
			o.startPool(root)
			t.Run("burst", func(t *testing.T) { o.sub(t).testBurst() })
			t.Run("outage", func(t *testing.T) { o.sub(t).testOutage() })
			t.Run("walltime", func(t *testing.T) { o.sub(t).testWalltime() })
			t.Run("killed", func(t *testing.T) { o.sub(t).testKilled() })
			o.checkNames()
		})
	}
}

// sub returns the pool for a subtest. What the subtest starts outlives it.
func (o *outerPool) sub(t *testing.T) *outerPool {
	part := *o
	part.pilotPool = &pilotPool{o.forSubtest(t), o.home}
	return &part
}

// startPool starts the pool, the batch system and the provisioner.
func (o *outerPool) startPool(root string) {
	o.home = filepath.Join(o.dir, "home")
	o.log = filepath.Join(o.dir, "provisioner.log")
	if err := errors.Join(os.Mkdir(o.home, 0o700), os.Chown(o.home, int(someone.uid), int(someone.gid))); err != nil {
		o.Fatal(err)
	}
	o.net.attachHost("first", "10.111.0.1")
	o.attachCluster()
	for _, line := range []string{"-t nat -A PREROUTING -i eth0 -p tcp --dport 22 -j DNAT --to 192.168.77.2:22",
		"-A FORWARD -i eth0 -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
		"-A FORWARD -i eth0 -p tcp --dport 22 -j ACCEPT", "-A FORWARD -i eth0 -j DROP"} {
		args := append([]string{"netns", "exec", o.net.namespaceName("router"), "iptables"}, strings.Fields(line)...)
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			o.Fatalf("iptables %s: %v\n%s", line, err, out)
		}
	}
	o.startOuter(root)
	o.mustRun("first", "init", "--name", "lab", "--root", o.hostDirectory("first").Root)
	o.startMaster("first")
	o.await("the pool", func() bool { return o.as(someone, "first", "jobs").Run() == nil })
	o.addProvider()
	o.startProvisioner()
	o.Cleanup(func() {
		o.stopProvisioner(syscall.SIGTERM)
		text, _ := os.ReadFile(o.log)
		o.Logf("==== provisioner\n%s", text)
	})
}

// enterDebian is a shell program that makes its namespaces look like a machine of its
// own. What is written there is gone with them.
const enterDebian = `set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$WORK"
mkdir "$WORK/upper" "$WORK/work" "$WORK/root"
mount -t overlay overlay -o "lowerdir=$DEBIAN,upperdir=$WORK/upper,workdir=$WORK/work" "$WORK/root"
cd "$WORK/root"
mkdir -p opt/roost opt/test
mount -t proc proc proc; mount --rbind /dev dev; mount -t sysfs -o ro sysfs sys
for d in dev/shm tmp; do mount -t tmpfs -o mode=1777 tmpfs $d; done
mount -t tmpfs -o mode=755 tmpfs run
mount --bind "$BIN" opt/roost; mount --bind "$FILES" opt/test
hostname peers
exec chroot . /bin/bash -c 'touch /run/ready; while :; do sleep 1; done'`

// startOuter starts the batch system in the node's network.
func (o *outerPool) startOuter(root string) {
	files, work := filepath.Join(o.dir, "files"), filepath.Join(o.dir, "debian")
	if err := errors.Join(os.Mkdir(files, 0o755), os.Mkdir(work, 0o755), o.system.files(files)); err != nil {
		o.Fatal(err)
	}
	key := filepath.Join(files, "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		o.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	if err := errors.Join(os.Rename(key, filepath.Join(o.home, "key")),
		os.Chown(filepath.Join(o.home, "key"), int(someone.uid), int(someone.gid))); err != nil {
		o.Fatal(err)
	}
	cmd := exec.Command("nsenter", "--net=/run/netns/"+o.net.namespaceName("node"), "unshare", "--mount", "--pid",
		"--uts", "--ipc", "--fork", "--kill-child", "sh", "-c", enterDebian)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN=" + root, "WORK=" + work, "FILES=" + files,
		"BIN=" + filepath.Dir(o.roost)}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() {
		if o.Failed() {
			out, _ := o.root("tail -n 60 /var/log/slurm/* /var/log/condor/S* /var/spool/gridengine/qmaster/messages " +
				"/home/bench/.roost-pilots/*.out 2>/dev/null").CombinedOutput()
			o.Logf("==== %s\n%s", o.system.kind, out)
		}
		cmd.Process.Kill()
		cmd.Wait()
	})
	o.await("the Debian", func() bool {
		o.first = 0
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		o.first, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		_, err := os.Stat(fmt.Sprintf("/proc/%d/root/run/ready", o.first))
		return o.first > 0 && err == nil
	})
	out, err := o.root(sharedStart + o.system.start).CombinedOutput()
	o.Logf("%s: %v\n%s", o.system.kind, err, out)
	if err != nil {
		o.Fatal(errs.String())
	}
}

// root returns a command of root beside the batch system. The daemons that it starts
// outlive it.
func (o *outerPool) root(program string) *exec.Cmd {
	cmd := exec.Command("nsenter", "-t", fmt.Sprint(o.first), "-m", "-u", "-i", "-n", "-p", "-r", "-w", "bash", "-c",
		"( "+program+"\n) </dev/null >/tmp/out 2>&1; s=$?; cat /tmp/out; exit $s")
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C"}
	return cmd
}

// mustRoot runs a command of root beside the batch system that must succeed.
func (o *outerPool) mustRoot(program string) string {
	o.Helper()
	out, err := o.root(program).CombinedOutput()
	if err != nil {
		o.Fatalf("%s: %v\n%s", program, err, out)
	}
	return string(out)
}

// bench runs a command of the user there.
func (o *outerPool) bench(program string) (string, error) {
	out, err := o.root("runuser -u bench -- sh -c " + shellWord(program)).CombinedOutput()
	return string(out), err
}

func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// there returns a command of the pool's user, whom ssh wants to have a name.
func (o *outerPool) there(args ...string) *exec.Cmd {
	passwd := filepath.Join(o.dir, "passwd")
	line := fmt.Sprintf("root:x:0:0::/root:/bin/sh\nada:x:%d:%d::%s:/bin/sh\n", someone.uid, someone.gid, o.home)
	if err := os.WriteFile(passwd, []byte(line), 0o644); err != nil {
		o.Fatal(err)
	}
	cmd := o.as(someone, "first", args...)
	at := slices.Index(cmd.Args, "setpriv")
	cmd.Args = slices.Concat(cmd.Args[:at], []string{"unshare", "--mount", "sh", "-c",
		`mount --bind "$0" /etc/passwd && exec "$@"`, passwd}, cmd.Args[at:])
	return cmd
}

// addProvider adds the provider, with a trial job.
func (o *outerPool) addProvider() {
	via := "ssh -i " + filepath.Join(o.home, "key") + " -o BatchMode=yes -o StrictHostKeyChecking=no " +
		"-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR bench@10.111.0.30"
	out, err := o.there("pilots", "add", "cluster", "--kind", o.system.kind, "--walltime", "30m", "--cpus", "2",
		"--memory", "700MiB", "--idle", "10s", "--max-pilots", "6", "--program", "/opt/roost/roost", "--via", via,
		"--no-start").CombinedOutput()
	if err != nil {
		o.Fatalf("roost pilots add: %v\n%s", err, out)
	}
	o.settings = filepath.Join(o.home, ".config/roost/pilots.hcl")
	o.change("kind ", "wait = \"5s\"\n  first_task = \"20s\"\n  "+
		"before = \"date +%s.%N >> /home/bench/started\"\n  kind ")
}

// change changes the file with the provider.
func (o *outerPool) change(from, to string) {
	o.Helper()
	text, err := os.ReadFile(o.settings)
	if err != nil || !bytes.Contains(text, []byte(from)) {
		o.Fatalf("%v: no %q in\n%s", err, from, text)
	}
	if err := os.WriteFile(o.settings, bytes.Replace(text, []byte(from), []byte(to), 1), 0o600); err != nil {
		o.Fatal(err)
	}
}

func (o *outerPool) startProvisioner() {
	log, err := os.OpenFile(o.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		o.Fatal(err)
	}
	defer log.Close()
	o.provisioner = o.there("pilots", "run")
	o.provisioner.Stdout, o.provisioner.Stderr = log, log
	if err := o.provisioner.Start(); err != nil {
		o.Fatal(err)
	}
}

func (o *outerPool) stopProvisioner(signal syscall.Signal) {
	o.provisioner.Process.Signal(signal)
	o.provisioner.Wait()
}

// logged counts lines of the provisioner's log.
func (o *outerPool) logged(message string) int {
	text, _ := os.ReadFile(o.log)
	return strings.Count(string(text), "msg="+message+" ")
}

// times returns the times in a file of the user there, in order.
func (o *outerPool) times(file string) (list []float64) {
	out, _ := o.root("cat /home/bench/" + file).Output()
	for _, word := range strings.Fields(string(out)) {
		if at, err := strconv.ParseFloat(word, 64); err == nil {
			list = append(list, at)
		}
	}
	slices.Sort(list)
	return list
}

// queued returns how many jobs the user has in the batch system.
func (o *outerPool) queued() (int, error) {
	out, err := o.bench(o.system.queue)
	return len(strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })), err
}

// awaitFor is await with a time.
func (o *outerPool) awaitFor(what string, most time.Duration, is func() bool) time.Duration {
	o.Helper()
	began := time.Now()
	if !pollUntil(o.Context(), most, is) {
		shown, _ := o.there("pilots", "show").CombinedOutput()
		jobs, _ := o.as(someone, "first", "jobs").CombinedOutput()
		queue, _ := o.bench(o.system.queue)
		o.Fatalf("%s: not after %v\n%s\n%s\n%s", what, most, shown, jobs, queue)
	}
	return time.Since(began)
}

// burst submits an array of tasks that write a line each, and returns its id.
func (o *outerPool) burst(file string, n int, more string) string {
	return o.submitAs(someone, fmt.Sprintf("walltime = \"1m\"\n  count = %d", n),
		"date +%s.%N >> /home/bench/"+file+more)
}

// done reports whether all tasks of a job have succeeded.
func (o *outerPool) done(id string) bool {
	return o.state(id).State == "completed"
}

// checkRuns checks that each task ran once.
func (o *outerPool) checkRuns(file string, want int) []float64 {
	o.Helper()
	ran := o.times(file)
	if len(ran) != want {
		o.Errorf("%s: %d runs of %d tasks", file, len(ran), want)
	}
	return ran
}

// testBurst runs many short tasks. Then there is silence, and nothing may be left.
func (o *outerPool) testBurst() {
	began := time.Now()
	id := o.burst("burst", outerTasks, "")
	took := o.awaitFor("all tasks", outerTimeout, func() bool { return o.done(id) })
	silent := o.awaitFor("the other system has nothing left", 10*time.Second+30*time.Second+5*time.Second, func() bool {
		n, err := o.queued()
		return err == nil && n == 0
	})
	ran, started := o.checkRuns("burst", outerTasks), o.times("started")
	if len(ran) > 0 && len(started) > 0 {
		o.Logf("%s: %d tasks in %v, the first %.1f s after the submit and %.1f s after its allocation began; "+
			"%d submits; the queue was empty %v later", o.system.kind, outerTasks, took.Round(time.Second/10),
			ran[0]-float64(began.UnixNano())/1e9, ran[0]-started[0], o.logged("submitted"),
			silent.Round(time.Second/10))
		if first := ran[0] - started[0]; first > 10 {
			o.Errorf("the first task began %.1f s after its allocation", first)
		}
	}
}

// testOutage takes the daemon with the queue away while tasks run and more are submitted.
// There may be no storm of submits, and no allocation twice.
func (o *outerPool) testOutage() {
	outage, err := time.ParseDuration(cmp.Or(os.Getenv(outerOutageVariable), "2m"))
	if err != nil {
		o.Fatal(err)
	}
	slow := o.burst("slow", 4, "; sleep 20") // which need two pilots of six
	o.awaitFor("tasks run", outerTimeout, func() bool { return len(o.times("slow")) >= 4 })
	o.mustRoot(o.system.stopController)
	before := o.logged("submit")
	more := o.burst("meanwhile", 60, "; sleep 2")
	pollUntil(o.Context(), outage, func() bool { return false })
	during := o.logged("submit") - before
	o.Logf("%s: %v without its controller: %d submits", o.system.kind, outage, during)
	if most := int(outage/time.Minute) + 4; during > most {
		o.Errorf("%d submits in %v", during, outage)
	}
	o.mustRoot(o.system.startController)
	took := o.awaitFor("all tasks after the outage", outerTimeout, func() bool { return o.done(slow) && o.done(more) })
	o.checkRuns("slow", 4)
	o.checkRuns("meanwhile", 60)
	silent := o.awaitFor("the other system has nothing left", 5*time.Minute, func() bool {
		n, err := o.queued()
		return err == nil && n == 0
	})
	o.Logf("%s: all tasks done %v after it was back, its queue empty %v later", o.system.kind,
		took.Round(time.Second/10), silent.Round(time.Second/10))
}

// testWalltime has allocations end while tasks of unknown length run. They start again
// elsewhere, and that does not count as a failure.
func (o *outerPool) testWalltime() {
	o.change("walltime   = \"30m\"", "tasks_without_walltime = true\n  walltime = \"2m\"")
	id := o.submitAs(someone, "retries = 0",
		`echo >> /home/bench/long; [ $(wc -l < /home/bench/long) -gt 1 ] || sleep 3600`)
	o.awaitFor("a task outlives its allocation", outerTimeout, func() bool { return o.done(id) })
	o.Logf("%s: the task ended as %+v", o.system.kind, o.state(id))
	o.change("tasks_without_walltime = true\n  walltime = \"2m\"", "walltime   = \"30m\"")
}

// testKilled kills the provisioner again and again while there is demand.
func (o *outerPool) testKilled() {
	before := o.logged("submitted")
	id := o.burst("killed", 300, "; sleep 2")
	kills := 0
	for wait := 300 * time.Millisecond; !o.done(id) && kills < 12; wait += 700 * time.Millisecond {
		pollUntil(o.Context(), wait, func() bool { return false })
		o.stopProvisioner(syscall.SIGKILL)
		kills++
		o.startProvisioner()
	}
	o.awaitFor("all tasks", outerTimeout, func() bool { return o.done(id) })
	o.checkRuns("killed", 300)
	silent := o.awaitFor("the other system has nothing left", 5*time.Minute, func() bool {
		n, err := o.queued()
		return err == nil && n == 0
	})
	o.Logf("%s: killed %d times, %d submits, the queue empty %v after the last task", o.system.kind, kills,
		o.logged("submitted")-before, silent.Round(time.Second/10))
}

// checkNames checks that no allocation was there twice, or is forgotten.
func (o *outerPool) checkNames() {
	seen := map[string]int{}
	out, err := o.root(o.system.names).CombinedOutput()
	for _, name := range strings.Fields(string(out)) {
		seen[strings.TrimPrefix(name, "Name=")]++
	}
	for name, n := range seen {
		if n > 1 {
			o.Errorf("allocation %s was there %d times", name, n)
		}
	}
	o.Logf("%s: %d allocations, with that of the trial", o.system.kind, len(seen))
	if len(seen) < 2 {
		o.Errorf("the names of its jobs: %v\n%s", err, out)
	}
}
