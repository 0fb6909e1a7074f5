package criu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	core "github.com/checkpoint-restore/go-criu/v7/crit/images/criu-core"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/fdinfo"
	ghost "github.com/checkpoint-restore/go-criu/v7/crit/images/ghost-file"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/mm"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/mnt"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/pagemap"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/pstree"
	inetsk "github.com/checkpoint-restore/go-criu/v7/crit/images/sk-inet"
	netlinksk "github.com/checkpoint-restore/go-criu/v7/crit/images/sk-netlink"
	skopts "github.com/checkpoint-restore/go-criu/v7/crit/images/sk-opts"
	unixsk "github.com/checkpoint-restore/go-criu/v7/crit/images/sk-unix"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/checkpoint/image"
)

// forgeImage changes the entries of one of CRIU's files, as anyone with the image's key
// can.
func forgeImage[M proto.Message](t *testing.T, dir, pattern string, newEntry func() M, change func(i int, m M)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, image.CRIUDir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	out, rest := data[:8:8], data[8:]
	for i := 0; len(rest) > 0; i++ {
		size := int(binary.LittleEndian.Uint32(rest))
		m := newEntry()
		if err := proto.Unmarshal(rest[4:4+size], m); err != nil {
			t.Fatal(err)
		}
		rest = rest[4+size:]
		change(i, m)
		text, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(text))), text...)
	}
	if err := os.WriteFile(names[0], out, 0o600); err != nil {
		t.Fatal(err)
	}
}

// forgedTask starts a task as startd/starterclient does, with the sandbox's own first
// process. It returns the task's image and the pid of the program inside.
func forgedTask(t *testing.T) (b *testSandbox, dir string, program string) {
	b = newTestSandbox(t, 1000, "")
	b.initProgram = b.base + "/init"
	first, err := os.ReadFile("../../startd/starter/init/init_amd64.bin")
	if err == nil {
		err = os.WriteFile(b.initProgram, first, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.program = `exec 5>deleted; rm deleted; i=0; while :; do i=$((i+1)); echo line $i; [ $i != 30 ] || echo >/tmp/thirty; sleep 0.01; done`
	b.start()
	b.waitUntil("first process", func() bool {
		return processName(b.pid) == "init" && strings.Contains(b.output(), "line 3\n")
	})
	dir, _ = b.dump("image")
	b.kill()
	tree, err := readEntries(dir, "pstree.img", func() *pstree.PstreeEntry { return &pstree.PstreeEntry{} })
	if err != nil || len(tree) < 2 {
		t.Fatalf("%d processes, %v", len(tree), err)
	}
	return b, dir, fmt.Sprintf("core-%d.img", tree[1].GetPid())
}

// TestForgedImages restores images that an attacker with their key has made of a good
// one. Each is refused with a sentence that names the fault, and no process of it
// executes anything.
func TestForgedImages(t *testing.T) {
	b, good, program := forgedTask(t)
	if err := b.tryRestore(good); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	again, _ := b.dump("again")
	b.kill()
	if err := b.tryRestore(again); err != nil {
		t.Fatalf("one of what was restored: %v", err)
	}
	b.kill()
	newCore := func() *core.CoreEntry { return &core.CoreEntry{} }
	newFile := func() *fdinfo.FileEntry { return &fdinfo.FileEntry{} }
	coreOf := func(name string, change func(c *core.CoreEntry)) func(dir string) {
		return func(dir string) { forgeImage(t, dir, name, newCore, func(_ int, c *core.CoreEntry) { change(c) }) }
	}
	// the errors of images that no honest machine makes
	blamed := []string{"uid 0", "capabilities", "keeps capabilities", "before all others", "make or cut"}
	for _, c := range []struct {
		name, want string
		change     func(dir string)
	}{
		{"root's uid", "uid 0", coreOf(program, func(c *core.CoreEntry) {
			x := c.GetThreadCore().GetCreds()
			x.Uid, x.Euid, x.Suid, x.Fsuid = proto.Uint32(0), proto.Uint32(0), proto.Uint32(0), proto.Uint32(0)
		})},
		{"a saved uid", "uid 0", coreOf(program, func(c *core.CoreEntry) {
			c.GetThreadCore().GetCreds().Suid = proto.Uint32(0)
		})},
		{"another gid", "gid 42", coreOf(program, func(c *core.CoreEntry) {
			c.GetThreadCore().GetCreds().Egid = proto.Uint32(42)
		})},
		{"another group", "group 42", coreOf(program, func(c *core.CoreEntry) {
			c.GetThreadCore().GetCreds().Groups = []uint32{42}
		})},
		{"capabilities", "capabilities", coreOf(program, func(c *core.CoreEntry) {
			x := c.GetThreadCore().GetCreds()
			x.CapEff, x.CapPrm = []uint32{1 << 21, 0}, []uint32{1 << 21, 0}
		})},
		{"inheritable capabilities", "capabilities", coreOf(program, func(c *core.CoreEntry) {
			c.GetThreadCore().GetCreds().CapInh = []uint32{2, 0}
		})},
		{"securebits", "keeps capabilities", coreOf(program, func(c *core.CoreEntry) {
			c.GetThreadCore().GetCreds().Secbits = proto.Uint32(1 << 4)
		})},
		{"no_new_privs off", "may get more rights", coreOf(program, func(c *core.CoreEntry) {
			x := c.GetThreadCore().GetCreds().ProtoReflect()
			x.SetUnknown(nil)
		})},
		{"real time", "before all others", coreOf(program, func(c *core.CoreEntry) {
			c.GetThreadCore().SchedPolicy = proto.Uint32(1)
		})},
		{"somebody's login", "login uid 1", coreOf(program, func(c *core.CoreEntry) {
			c.GetTc().Loginuid = proto.Uint32(1)
		})},
		{"a field that is not known", "not known here", coreOf(program, func(c *core.CoreEntry) {
			c.ProtoReflect().SetUnknown([]byte{0xf8, 0x07, 0x01})
		})},
		{"a process outside of the tree", "below none", func(dir string) {
			forgeImage(t, dir, "pstree.img", func() *pstree.PstreeEntry {
				return &pstree.PstreeEntry{}
			}, func(i int, p *pstree.PstreeEntry) {
				if i == 1 {
					p.Ppid = proto.Uint32(0)
				}
			})
		}},
		{"the machine's namespaces", "namespaces of a sandbox", func(dir string) {
			forgeImage(t, dir, "ids-1.img", func() *core.TaskKobjIdsEntry {
				return &core.TaskKobjIdsEntry{}
			}, func(_ int, k *core.TaskKobjIdsEntry) {
				k.MntNsId = proto.Uint32(6)
			})
		}},
		{"a first process elsewhere in its code", "is at an unexpected address",
			coreOf("core-1.img", func(c *core.CoreEntry) {
				r := c.GetThreadInfo().GetGpregs()
				r.Ip, r.Ax = proto.Uint64(initBase+0x121), proto.Uint64(59) // execve
			})},
		{"a first process of 32 bits", "another mode", coreOf("core-1.img", func(c *core.CoreEntry) {
			c.GetThreadInfo().GetGpregs().Cs = proto.Uint64(0x23)
		})},
		{"a first process with a handler", "handles signals", coreOf("core-1.img", func(c *core.CoreEntry) {
			c.GetTc().GetSigactions()[2].Sigaction = proto.Uint64(initBase + 0x100)
		})},
		{"a first process with more code", "memory that it never asks for", func(dir string) {
			forgeImage(t, dir, "mm-1.img", func() *mm.MmEntry { return &mm.MmEntry{} }, func(_ int, m *mm.MmEntry) {
				for _, v := range m.GetVmas() {
					if v.GetStatus()&vmaAnon != 0 {
						v.Prot = proto.Uint32(7)
					}
				}
			})
		}},
		{"a first process with another program", "another program", func(dir string) {
			path, at := firstPage(t, dir)
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err == nil {
				_, err = f.WriteAt([]byte{0x90, 0x90}, at+0x123)
				f.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"a first process with a file of root's", "its first process has", func(dir string) {
			secret := b.base + "/secret"
			if err := os.WriteFile(secret, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			forgeImage(t, dir, "files.img", newFile, func(_ int, f *fdinfo.FileEntry) {
				if f.GetReg().GetName() == "/dev/roost/code" {
					f.GetReg().Name, f.GetReg().MntId, f.GetReg().Size = proto.String(secret),
						proto.Int32(rootMount(t, dir)), nil
				}
			})
		}},
		{"a file that is cut", "make or cut", func(dir string) {
			forgeImage(t, dir, "files.img", newFile, func(_ int, f *fdinfo.FileEntry) {
				if r := f.GetReg(); r != nil && strings.HasSuffix(r.GetName(), "/stdout") {
					r.Flags = proto.Uint32(r.GetFlags() | unix.O_TRUNC)
				}
			})
		}},
		{"a socket for all packets", "no task may open", func(dir string) { addFile(t, dir, fdinfo.FdTypes_PACKETSK) }},
		{"a deleted file that is a device", "not the task's", func(dir string) {
			forgeImage(t, dir, "ghost-file-*.img", func() *ghost.GhostFileEntry {
				return &ghost.GhostFileEntry{}
			}, func(_ int, g *ghost.GhostFileEntry) {
				g.Mode, g.Rdev = proto.Uint32(unix.S_IFBLK|0o666), proto.Uint32(8<<20)
			})
		}},
		{"a mount of the machine", "a mount at", func(dir string) {
			forgeImage(t, dir, "mountpoints-*.img", func() *mnt.MntEntry {
				return &mnt.MntEntry{}
			}, func(_ int, m *mnt.MntEntry) {
				if m.GetMountpoint() == "/dev/shm" {
					m.Mountpoint, m.Source = proto.String("/mnt"), proto.String("/dev/vda")
				}
			})
		}},
		{"rules for the machine's network", "there is a file", func(dir string) {
			if err := os.WriteFile(filepath.Join(dir, image.CRIUDir, "iptables-9.img"), []byte("x"),
				0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := b.base + "/" + strings.ReplaceAll(c.name, " ", "-")
			if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			c.change(dir)
			err := b.tryRestore(dir)
			stepped := strings.Count(b.output(), "\n")
			if err == nil {
				t.Fatal("it was restored")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			if f, ok := errors.AsType[*CheckpointError](err); !ok || f.Forged != slices.Contains(blamed, c.want) {
				t.Errorf("its maker is suspected: %v", ok && f.Forged)
			}
			if was, _ := os.ReadFile(filepath.Join(dir, image.IODir, "stdout")); stepped != strings.Count(string(was),
				"\n") {
				t.Errorf("it has made a step: %d lines", stepped)
			}
		})
	}
}

// TestMarkedSockets checks that only a process with rights over the network may mark
// packets, for sockets of all kinds.
func TestMarkedSockets(t *testing.T) {
	mark := &skopts.SkOptsEntry{SoMark: proto.Uint32(7)}
	for name, f := range map[string]*fdinfo.FileEntry{
		"unix": {Usk: &unixsk.UnixSkEntry{Opts: mark}}, "inet": {Isk: &inetsk.InetSkEntry{Opts: mark}},
		"netlink": {Nlsk: &netlinksk.NetlinkSkEntry{Opts: mark}},
	} {
		if !hasPacketMark(f.ProtoReflect()) {
			t.Errorf("%s: the mark is not seen", name)
		}
	}
	if hasPacketMark((&fdinfo.FileEntry{
		Usk: &unixsk.UnixSkEntry{Opts: &skopts.SkOptsEntry{SoMark: proto.Uint32(0)}},
	}).ProtoReflect()) {
		t.Error("a socket without a mark is refused")
	}
}

// TestRestoredBounds checks that restored processes have no higher limits than their
// claim and this machine, and no higher priority. The image is good, and of a claim
// without limits.
func TestRestoredBounds(t *testing.T) {
	b, good, _ := forgedTask(t)
	b.limits, b.nice = map[int]uint64{unix.RLIMIT_FSIZE: 1 << 30, unix.RLIMIT_NOFILE: 100}, 5
	if err := b.tryRestore(good); err != nil {
		t.Fatal(err)
	}
	defer b.kill()
	for _, pid := range processTree(b.pid)[1:] {
		for kind, most := range b.limits {
			var has unix.Rlimit
			if err := unix.Prlimit(pid, kind, nil, &has); err != nil || has.Max != most || has.Cur > most {
				t.Errorf("limit %d of process %d: %+v, %v", kind, pid, has, err)
			}
		}
		if n, err := threadNice(pid); err != nil || n != b.nice {
			t.Errorf("process %d is at %d, %v", pid, n, err)
		}
	}
}

// firstPage finds the code of the first process among the pages in an image. CRIU wrote
// into the code to dump it, so the page is the process's own.
func firstPage(t *testing.T, dir string) (path string, at int64) {
	data, err := os.ReadFile(filepath.Join(dir, image.CRIUDir, "pagemap-1.img"))
	if err != nil {
		t.Fatal(err)
	}
	var head pagemap.PagemapHead
	found := false
	for i, rest := 0, data[8:]; len(rest) > 0 && !found; i++ {
		text := rest[4 : 4+binary.LittleEndian.Uint32(rest)]
		rest = rest[4+len(text):]
		var e pagemap.PagemapEntry
		if i == 0 {
			err = proto.Unmarshal(text, &head)
		} else {
			err = proto.Unmarshal(text, &e)
		}
		if err != nil {
			t.Fatal(err)
		}
		if found = i > 0 && e.GetVaddr() == initBase; !found {
			at += int64(e.GetNrPages()) * 4096
		}
	}
	if !found {
		t.Fatal("the code of the first process is not among its pages")
	}
	return fmt.Sprintf("%s/%s/pages-%d.img", dir, image.CRIUDir, head.GetPagesId()), at
}

// rootMount returns the number of the root's mount in an image.
func rootMount(t *testing.T, dir string) (id int32) {
	forgeImage(t, dir, "mountpoints-*.img", func() *mnt.MntEntry {
		return &mnt.MntEntry{}
	}, func(_ int, m *mnt.MntEntry) {
		if m.GetMountpoint() == "/" {
			id = int32(m.GetMntId())
		}
	})
	return id
}

// addFile changes the type of one of the open files.
func addFile(t *testing.T, dir string, as fdinfo.FdTypes) {
	forgeImage(t, dir, "files.img", func() *fdinfo.FileEntry {
		return &fdinfo.FileEntry{}
	}, func(_ int, f *fdinfo.FileEntry) {
		if strings.HasSuffix(f.GetReg().GetName(), "/stderr") {
			f.Type, f.Reg = as.Enum(), nil
		}
	})
}
