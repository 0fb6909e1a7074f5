package criu

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinksPutInPlaceOfOpenFiles replaces an open file by a link to another user's file.
// CRIU opens files by their paths and as root. The attacker gets no access, and the task
// is not restored.
func TestLinksPutInPlaceOfOpenFiles(t *testing.T) {
	for _, tt := range []struct{ name, open, use string }{
		{"reading", `exec 5<OWN/data`, `cat <&5`},
		{"writing", `exec 5>>OWN/data`, `echo broken >&5`},
		{"working directory", `cd OWN/dir`, `cat file`},
		{"mapped", `exec python3 -c '
import mmap, os, time
m = mmap.mmap(os.open("OWN/data", os.O_RDONLY), 0, prot=mmap.PROT_READ)
print("ready", flush=True)
while not os.path.exists("/tmp/on"): time.sleep(0.01)
print(m[:].decode(), flush=True)'`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newTestSandbox(t, 1000, "")
			own, closed := b.base+"/own", b.base+"/closed"
			secret := closed + "/data"
			for _, dir := range []string{own, own + "/dir", closed, closed + "/dir"} {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			put := func(path, text string, uid int) {
				if err := errors.Join(os.WriteFile(path, []byte(text), 0o644), os.Chown(path, uid, uid),
					os.Chown(filepath.Dir(path), uid, uid)); err != nil {
					t.Fatal(err)
				}
			}
			put(own+"/data", "nothing", 1000)
			put(own+"/dir/file", "nothing", 1000)
			put(secret, "secret!", 0)
			put(closed+"/dir/file", "secret!", 0)
			b.program = strings.ReplaceAll(tt.open, "OWN", own) +
				"; echo ready; until [ -e /tmp/on ]; do sleep 0.01; done; " + tt.use
			b.start()
			b.waitUntil("the open file", func() bool { return strings.Contains(b.output(), "ready") })
			dir, _ := b.dump("image")
			b.kill()
			good := b.tryRestore(dir)
			if good != nil {
				t.Fatalf("in peace: %v", good)
			}
			b.kill()
			for _, name := range []string{"data", "dir"} {
				if err := errors.Join(os.RemoveAll(own+"/"+name),
					os.Symlink(closed+"/"+name, own+"/"+name)); err != nil {
					t.Fatal(err)
				}
			}
			err := b.tryRestore(dir)
			if err == nil {
				os.WriteFile(b.directories.Scratch+"/on", nil, 0o644)
				b.waitForEnd()
			}
			text, _ := os.ReadFile(secret)
			if out := b.output(); err == nil || !strings.Contains(err.Error(), "belongs to somebody else") ||
				strings.Contains(out, "secret!") || string(text) != "secret!" {
				t.Errorf("got error %v, output %q, and the file holds %q", err, out, text)
			}
		})
	}
}
