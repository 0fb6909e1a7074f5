package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The programs that are checkpointed. Each prints the attempt in which it was started,
// then lines "line i v" for i from 1 until its gate opens, where v is the square of i
// modulo 1000003. Finally it prints the number of lines and their sum. It also appends
// each i to a file. So lost work leaves a gap, repeated work appears twice, and a program
// that started again shows another attempt than the first.

// savedShell is a pipeline of subshells that fork all the time.
const savedShell = `echo "attempt $ROOST_ATTEMPT"
i=0
while [ ! -e "$1" ]; do i=$((i+1)); echo $i; sleep 0.03; done |
while read x; do echo $x >>"$2"; echo $x $((x*x%1000003)); done |
{ n=0; s=0; while read x y; do n=$((n+1)); s=$((s+y)); echo "line $x $y"; done; echo "end $n $s"; }
`

// savedPython has three processes of two threads each, connected by pipes.
const savedPython = `import os, sys, time, threading, queue

def serve(r, w):
    tasks, done = queue.Queue(), queue.Queue()
    def work():
        while True:
            x = tasks.get()
            done.put("%d %d\n" % (x, x * x % 1000003))
    for i in range(2):
        threading.Thread(target=work, daemon=True).start()
    for line in os.fdopen(r):
        tasks.put(int(line))
        os.write(w, done.get().encode())
    os._exit(0)

print("attempt", os.environ["ROOST_ATTEMPT"], flush=True)
children = []
for i in range(3):
    r, to = os.pipe()
    back, w = os.pipe()
    if os.fork() == 0:
        for f, g in children:
            f.close(); g.close()
        os.close(to); os.close(back)
        serve(r, w)
    os.close(r); os.close(w)
    children.append((os.fdopen(to, "w"), os.fdopen(back)))
n = s = 0
with open(sys.argv[2], "a") as grown:
    while not os.path.exists(sys.argv[1]):
        n += 1
        to, back = children[n % 3]
        print(n, file=to, flush=True)
        x, y = back.readline().split()
        s += int(y)
        print(n, file=grown, flush=True)
        print("line", x, y, flush=True)
        time.sleep(0.03)
print("end", n, s)
`

// savedGo has goroutines, one of which reads a pipe, an unused TCP listener, and a file.
// It has no connection, because a restore may close it, and the effect depends on the
// program.
const savedGo = `package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

func ask(to io.Writer, back io.Reader, x int) (a, b int) {
	fmt.Fprintln(to, x)
	if _, err := fmt.Fscanln(back, &a, &b); err != nil {
		panic(err)
	}
	return a, b
}

func pipe() (*os.File, *os.File) {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	return r, w
}

func main() {
	fmt.Println("attempt", os.Getenv("ROOST_ATTEMPT"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	asked, to := pipe()
	back, answer := pipe()
	go func() {
		for {
			var x int
			if _, err := fmt.Fscanln(asked, &x); err != nil {
				panic(err)
			}
			fmt.Fprintln(answer, x, x*x%1000003)
		}
	}()
	grown, err := os.OpenFile(os.Args[2], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		panic(err)
	}
	n, s := 0, 0
	for {
		if _, err := os.Stat(os.Args[1]); err == nil {
			break
		}
		n++
		x, y := ask(to, back, n)
		s += y
		fmt.Fprintln(grown, n)
		fmt.Println("line", x, y)
		time.Sleep(30 * time.Millisecond)
	}
	fmt.Println("end", n, s)
}
`

// writeCheckpointPrograms writes the programs where all hosts see them. It returns the
// command of each, to be followed by the paths of its gate and its file.
func (h *hostPool) writeCheckpointPrograms() map[string]string {
	dir := filepath.Join(h.dir, "programs")
	for name, text := range map[string]string{"shell.sh": savedShell, "python.py": savedPython, "worker.go": savedGo} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			h.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			h.Fatal(err)
		}
	}
	build := exec.CommandContext(h.Context(), "go", "build", "-o", dir+"/worker", dir+"/worker.go")
	if out, err := build.CombinedOutput(); err != nil {
		h.Fatalf("%v\n%s", err, out)
	}
	all := map[string]string{"shell": `"/bin/sh", "` + dir + `/shell.sh"`, "go": `"` + dir + `/worker"`}
	if python, err := exec.LookPath("/usr/bin/python3"); err == nil { // that of PATH may be a private one
		all["python"] = `"` + python + `", "` + dir + `/python.py"`
	}
	return all
}

// outputErrors describes what is wrong in the output of a checkpointed program; "" if
// nothing is.
func outputErrors(output, grown string) string {
	lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
	if lines[0] != "attempt 1" {
		return fmt.Sprintf("it begins with %q: its work was lost", lines[0])
	}
	sum, n := 0, len(lines)-2
	var want strings.Builder
	for i := 1; i <= n; i++ {
		sum += i * i % 1000003
		if line := fmt.Sprintf("line %d %d", i, i*i%1000003); lines[i] != line {
			return fmt.Sprintf("line %d is %q, want %q", i, lines[i], line)
		}
		fmt.Fprintln(&want, i)
	}
	if end := fmt.Sprintf("end %d %d", n, sum); lines[len(lines)-1] != end {
		return fmt.Sprintf("the last line is %q, want %q", lines[len(lines)-1], end)
	}
	if grown != want.String() {
		return fmt.Sprintf("its file has %d bytes, want %d", len(grown), want.Len())
	}
	return ""
}
