package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/master"
	"github.com/roost-batch/roost/schedd/journal"
)

// RestoreCommand returns roost restore: put back what an archive has.
func RestoreCommand() *frame.Command {
	return &frame.Command{
		Name: "restore", Group: frame.GroupPool, Summary: "put back what roost backup has written",
		Synopsis: "FILE", MinOperands: 1, MaxOperands: 1, OperandName: "an archive of roost backup", Run: runRestore,
		Description: "Puts the files of an archive back where they were. Nothing may be there that they would " +
			"replace, and no daemon may run there. Jobs that had not ended at the time of the backup are held: they " +
			"may have ended since, or run still. Numbers of jobs and attempts that the node may have given since " +
			"are not given again.",
		Examples: []frame.Example{
			{Line: "roost restore --dry-run submit1.tar.gz",
				Description: "what is in it, and whether it could be restored"},
			{Line: "roost restore submit1.tar.gz && systemctl start roost", Description: "as root, on a new machine"},
			{Line: "roost release all", Description: "as each user, after looking at what the held jobs have done"},
		},
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "dry-run", Usage: "only check the archive, and say what is in it"},
			frame.JSONFlag(),
		},
	}
}

// restoredNode is what came of a restore.
type restoredNode struct {
	*Manifest
	held []string // what was done to the jobs, a line each
}

func runRestore(c *frame.Invocation) error {
	f, err := os.Open(c.AbsolutePath(c.Args[0]))
	if err != nil {
		return frame.KindErrorf(roost.NoInput, "%v", err)
	}
	defer f.Close()
	name := document.PrintableText(c.Args[0])
	a, err := openArchive(f)
	if err != nil {
		return frame.KindErrorf(roost.Invalid, "%s: %s", name, withoutKind(err))
	}
	if err := checkTarget(&a.Manifest); err != nil && !c.Flag("dry-run") {
		return err
	} else if err != nil {
		fmt.Fprintf(c.Stderr, "as it stands here, it would be refused: %s\n", frame.ErrorText(err))
	}
	r := restoredNode{Manifest: &a.Manifest}
	if c.Flag("dry-run") {
		err = a.eachFile(func(*StoredFile, io.Reader) error { return nil })
	} else {
		err = r.restore(c, a)
	}
	if err != nil {
		return frame.KindErrorf(roost.Invalid, "%s: %s", name, withoutKind(err))
	}
	return r.report(c, name)
}

// withoutKind is an error without the words of its kind before it.
func withoutKind(err error) string {
	return strings.TrimPrefix(err.Error(), roost.Invalid.Error()+": ")
}

// checkTarget refuses a restore over a running node, or over files of one.
func checkTarget(m *Manifest) error {
	if _, running, err := master.ReadState(m.Dir); err == nil && running {
		return frame.WithHint(frame.KindErrorf(roost.Conflict, "the daemons of %s run", m.Dir),
			"stop them first (systemctl stop roost)")
	}
	for i := range m.Files {
		f := &m.Files[i]
		if f.Mode.IsDir() {
			continue
		}
		if _, err := os.Lstat(f.Path); err == nil {
			return frame.WithHint(frame.KindErrorf(roost.Conflict, "%s is there already, and may be newer than the "+
				"archive of %s", f.Path, m.At.Local().Format("2006-01-02 15:04")),
				fmt.Sprintf("move %s and %s away first; nothing was changed", m.Dir, filepath.Dir(m.NodeFile)))
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return frame.KindErrorf(roost.NoOutput, "%v", err)
		}
	}
	return nil
}

// stagingSuffix is appended to the directory of a node for that of an unfinished restore.
const stagingSuffix = ".restoring"

// restore unpacks an archive beside the node's directory and holds the jobs in the copy.
// Then it moves all files to their places. Before that nothing of the node is there, so
// that an interrupted restore is begun anew.
func (r *restoredNode) restore(c *frame.Invocation, a *archiveReader) error {
	staging := strings.TrimSuffix(r.Dir, "/") + stagingSuffix
	if err := os.MkdirAll(filepath.Dir(staging), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(staging); err != nil {
		return err
	}
	if err := os.Mkdir(staging, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(staging)
	at := func(path string) string { return filepath.Join(staging, path) }
	if err := a.eachFile(func(f *StoredFile, content io.Reader) error {
		return unpack(f, at(f.Path), content)
	}); err != nil {
		return err
	}
	if r.Schedd {
		if err := r.holdJobs(c, at(filepath.Join(r.Dir, "schedd"))); err != nil {
			return err
		}
	}
	return r.moveFiles(at)
}

// unpack writes one file of an archive.
func unpack(f *StoredFile, to string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	switch f.Mode.Type() {
	case fs.ModeDir:
		return os.MkdirAll(to, 0o700)
	case fs.ModeSymlink:
		return os.Symlink(f.Link, to)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Sync(), out.Close())
}

// holdJobs holds the jobs of a restored queue that had not ended. What a schedd sends to
// the accountant begins anew, so that nothing is missing there.
func (r *restoredNode) holdJobs(c *frame.Invocation, dir string) error {
	report, err := journal.HoldRestored(dir, r.Node, c.Now(), r.At)
	if err != nil {
		return fmt.Errorf("the queue: %w", err)
	}
	if report != nil {
		r.held = report.Actions
		os.RemoveAll(report.DamagedPath + ".log")
		if report.DamagedPath != "" {
			if err := os.Remove(report.DamagedPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return errors.Join(os.RemoveAll(filepath.Join(dir, "feed.log")), removeIfThere(filepath.Join(dir, "feed.log.mark")))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// moveFiles moves what was unpacked to its place. A directory that is there stays as it
// is; what the jobs' being held has added is moved, too.
func (r *restoredNode) moveFiles(at func(string) string) error {
	known := map[string]*StoredFile{}
	for i := range r.Files {
		known[r.Files[i].Path] = &r.Files[i]
	}
	root := at("/")
	var made []string
	err := filepath.WalkDir(root, func(from string, d fs.DirEntry, err error) error {
		if err != nil || from == root {
			return err
		}
		to := "/" + strings.TrimPrefix(strings.TrimPrefix(from, root), "/")
		f := known[to]
		if d.IsDir() {
			if _, err := os.Stat(to); err == nil {
				return nil
			}
			mode := fs.FileMode(0o755) // above what was stored
			if f != nil {
				mode = f.Mode.Perm()
			}
			if err := os.Mkdir(to, mode); err != nil {
				return err
			}
			made = append(made, to)
			return setOwner(to, f)
		}
		if err := moveFile(from, to, d); err != nil {
			return err
		}
		if f != nil && f.Mode.IsRegular() {
			if err := os.Chmod(to, f.Mode.Perm()); err != nil {
				return err
			}
		}
		if f == nil {
			f = known[filepath.Dir(to)] // a new file has the owner of its directory
		}
		return setOwner(to, f)
	})
	for _, dir := range slices.Backward(made) {
		err = errors.Join(err, atomicfile.SyncDir(dir))
	}
	return err
}

// setOwner gives a file the owner that it had, where this process may do that.
func setOwner(path string, f *StoredFile) error {
	if f == nil || os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(path, f.UID, f.GID)
}

// moveFile renames a file, or copies it where its place is on another file system.
func moveFile(from, to string, d fs.DirEntry) error {
	if err := os.Rename(from, to); err == nil || !errors.Is(err, syscall.EXDEV) {
		return err
	}
	if d.Type() == fs.ModeSymlink {
		link, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(link, to)
	}
	if _, err := copyFile(from, to); err != nil {
		return err
	}
	f, err := os.Open(to)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (r *restoredNode) report(c *frame.Invocation, name string) error {
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"file": name, "node": r.Node, "pool": r.Pool, "at": r.At,
			"dir": r.Dir, "node_file": r.NodeFile, "files": len(r.Files), "jobs": append([]string{}, r.held...),
			"left_out": append([]string{}, r.Left...), "restored": !c.Flag("dry-run")})
	}
	fmt.Fprintf(c.Stdout, "%s: node %s of pool %s as of %s, %d files, by roost %s\n", name,
		document.PrintableText(r.Node), document.PrintableText(r.Pool), r.At.Local().Format("2006-01-02 15:04:05"),
		len(r.Files), document.PrintableText(r.Roost))
	for _, why := range r.Left {
		fmt.Fprintf(c.Stdout, "not in it: %s\n", document.PrintableText(why))
	}
	if c.Flag("dry-run") {
		fmt.Fprintf(c.Stdout, "All checksums are right. It would be restored to %s.\n", r.Dir)
		return nil
	}
	for _, text := range r.held {
		fmt.Fprintln(c.Stdout, document.PrintableText(text))
	}
	fmt.Fprintf(c.Stdout, "Restored to %s. Start the daemons: systemctl start roost, or roost master --config %s\n",
		r.Dir, r.NodeFile)
	if r.Schedd {
		fmt.Fprintln(c.Stdout, "Then users look at what their held jobs have done, and release them: roost release all")
	}
	return nil
}
