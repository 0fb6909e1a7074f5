package criu

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// countProgram is a Go program with threads. Four goroutines add numbers, one after the
// other, and it prints its progress.
func countProgram(args []string) error {
	rounds, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var sums [4]int
	for i := range rounds {
		var wg sync.WaitGroup
		for g := range sums {
			wg.Go(func() { sums[g] += i * (g + 1) })
		}
		wg.Wait()
		fmt.Println("line", i)
		<-time.After(4 * time.Millisecond)
		for i == halfwayCount {
			if _, err := os.Stat("on"); err == nil {
				break
			}
			<-time.After(4 * time.Millisecond)
		}
	}
	fmt.Println("sum", sums[0]+sums[1]+sums[2]+sums[3])
	return nil
}

// halfwayCount is the line at which the programs wait for a file "on" in their directory.
// Without the wait they would end before the second checkpoint on a slow machine.
const halfwayCount = 100

// testTasks returns programs with state worth dumping: pipes, subshells, growing files,
// threads, open and deleted files. Each prints "line N" for 200 values, and a sum that is
// wrong if anything was lost or done twice.
func testTasks(t *testing.T) map[string]string {
	list := map[string]string{
		"shell": `exec 5>deleted; rm deleted; mkdir -p d; trap 'echo trapped' USR1
			i=0; while [ $i -lt 200 ]; do echo $i; echo $i >>d/grown; sleep 0.004; i=$((i+1))
				until [ $i != 100 ] || [ -e on ]; do sleep 0.004; done; done |
			while read x; do echo line $x; echo $x >&5; done
			echo sum $(awk '{ n += $1 * 10 } END { print n }' d/grown)`,
		"go": "",
	}
	if _, err := exec.LookPath("python3"); err == nil {
		list["python"] = `exec python3 -c '
import threading, time, tempfile, queue, os
q, done, kept = queue.Queue(), queue.Queue(), tempfile.TemporaryFile()
def work():
    while True:
        x = q.get()
        kept.write(b"x" * 10)
        done.put(x * 10)
for i in range(4): threading.Thread(target=work, daemon=True).start()
total = 0
for i in range(200):
    q.put(i)
    total += done.get()
    print("line", i, flush=True)
    time.sleep(0.004)
    while i == 100 and not os.path.exists("on"): time.sleep(0.004)
kept.seek(0)
assert len(kept.read()) == 2000
print("sum", total)'`
	}
	return list
}

func wholeOutput() string {
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintln(&want, "line", i)
	}
	fmt.Fprintln(&want, "sum", 199*200/2*10)
	return want.String()
}

// TestDumpRestore takes two checkpoints of each running program, kills it, and continues
// from the older and from the newer one.
func TestDumpRestore(t *testing.T) {
	for _, uid := range []uint32{0, 1000} {
		for name, program := range testTasks(t) {
			t.Run(fmt.Sprintf("%s as %d", name, uid), func(t *testing.T) {
				b := newTestSandbox(t, uid, program)
				if name == "go" {
					b.program = "exec " + b.copyTestBinary() + " count 200"
				}
				b.start()
				b.waitUntil("40 lines", func() bool { return strings.Count(b.output(), "\n") >= 40 })
				older, r := b.dump("older")
				t.Logf("frozen %v, memory %v, total %v, %d bytes, %d entries", r.Frozen, r.Memory, r.Total,
					r.Bytes, r.Entries)
				b.waitUntil("80 lines", func() bool { return strings.Count(b.output(), "\n") >= 80 })
				newer, _ := b.dump("newer")
				b.waitUntil("90 lines", func() bool { return strings.Count(b.output(), "\n") >= 90 })
				b.kill()
				os.RemoveAll(b.directories.Scratch)
				os.RemoveAll(b.directories.IO)
				for _, dir := range []string{newer, older} {
					restored := b.restore(dir)
					t.Logf("restored in %v", restored.Total)
					if err := os.WriteFile(b.directories.Scratch+"/on", nil, 0o644); err != nil {
						t.Fatal(err)
					}
					if code := b.waitForEnd(); code != "0" || b.output() != wholeOutput() {
						errs, _ := os.ReadFile(b.directories.IO + "/stderr")
						t.Errorf("%s: got code %s, %.4000q, %s", dir, code, b.output(), errs)
					}
				}
			})
		}
	}
}

// copyTestBinary copies the test binary to where the task's user can run it.
func (b *testSandbox) copyTestBinary() string {
	b.t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(b.base+"/program", program, 0o755)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return b.base + "/program"
}
