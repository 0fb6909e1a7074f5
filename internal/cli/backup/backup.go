package backup

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/schedd/journal"
)

// Command returns roost backup: write what this node stores into an archive.
func Command() *frame.Command {
	return &frame.Command{
		Name: "backup", Group: frame.GroupPool, Summary: "write what this node stores into an archive",
		Synopsis: "FILE", MinOperands: 1, MaxOperands: 1, OperandName: "the archive to write", Run: runBackup,
		Description: "Writes the queue, the history, the accounts, the authority, the settings and the keys of " +
			"this node into one archive, while its daemons run. They stand still while their files are copied. " +
			"The archive has the keys of the node, and of the pool on a central manager: store it accordingly.",
		Examples: []frame.Example{
			{Line: "roost backup /srv/backup/submit1.tar.gz",
				Description: "as root, of the node of /etc/roost/node.hcl"},
			{Line: "roost restore /srv/backup/submit1.tar.gz", Description: "on the machine that takes its place"},
		},
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "checkpoints", Usage: "also the images and packages of a checkpoint server, which " +
				"may be large"},
			&ucli.BoolFlag{Name: "force", Usage: "replace FILE if it is there already"},
			&ucli.StringFlag{Name: "config", Usage: "the node `FILE` of the node that is meant"}, frame.JSONFlag(),
		},
	}
}

func runBackup(c *frame.Invocation) error {
	n, err := nodeaccess.ReadNodeFile(c)
	if err != nil {
		return err
	}
	path := c.AbsolutePath(c.Args[0])
	if _, err := os.Lstat(path); err == nil && !c.Flag("force") {
		return frame.WithHint(frame.KindErrorf(roost.NoOutput, "%s is there already",
			document.PrintableText(c.Args[0])), "name another file, or replace it with --force")
	}
	if isBelow(path, n.Dir) {
		return frame.KindErrorf(roost.Usage, "%s is in the directory that it is to be a backup of: name a file "+
			"outside of %s, best on another machine", document.PrintableText(c.Args[0]), n.Dir)
	}
	m, err := writeBackup(path, n, c.Now(), c.Flag("checkpoints"))
	if err != nil {
		return frame.KindErrorf(roost.NoOutput, "%v", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return frame.KindErrorf(roost.NoOutput, "%v", err)
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"file": path, "bytes": info.Size(), "node": m.Node,
			"files": len(m.Files), "paused_s": m.Paused.Seconds(), "left_out": append([]string{}, m.Left...)})
	}
	fmt.Fprintf(c.Stdout, "%s: %d files of %s in %v. Its daemons stood still for %v.\n",
		document.PrintableText(c.Args[0]), len(m.Files), m.Node, roost.Bytes(info.Size()),
		m.Paused.Round(time.Millisecond))
	for _, why := range m.Left {
		fmt.Fprintf(c.Stdout, "not in it: %s\n", document.PrintableText(why))
	}
	fmt.Fprintln(c.Stdout, "It has the node's keys: who reads it can act as this node.")
	return nil
}

// writeBackup copies the files of a node while its daemons stand still, and writes the
// archive when they go on.
func writeBackup(path string, n *config.Node, now time.Time, checkpoints bool) (m *Manifest, err error) {
	copies, err := os.MkdirTemp(filepath.Dir(path), ".roost-backup-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(copies)
	m = &Manifest{Version: manifestVersion, Roost: roost.Version, Node: n.Name, Pool: n.Pool, At: now.UTC(), Dir: n.Dir,
		NodeFile: n.File, Schedd: n.Schedd != nil}
	s := &selection{node: n, checkpoints: checkpoints, manifest: m, copies: copies}
	frozen, err := freezeDaemons(n)
	if err != nil {
		return nil, err
	}
	err = s.copyNode()
	if err = errors.Join(err, frozen.thaw()); err != nil {
		return nil, err
	}
	m.Paused = time.Since(frozen.since)
	if err := s.addSums(); err != nil {
		return nil, err
	}
	next := filepath.Join(copies, "archive")
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = writeArchive(f, m, func(file *StoredFile) (io.ReadCloser, error) { return os.Open(s.copyPath(file.Path)) })
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	return m, os.Rename(next, path)
}

// selection is the files of a node that go into an archive.
type selection struct {
	node        *config.Node
	checkpoints bool
	manifest    *Manifest
	copies      string // directory of the copies
	seen        map[string]bool
}

// copyNode copies what the daemons store, the settings and the keys.
func (s *selection) copyNode() error {
	n := s.node
	left := []string{n.RunDir(), n.LogDir(), filepath.Join(n.Dir, "startd"),
		filepath.Join(n.Dir, "schedd", journal.ReserveName)}
	for i := range n.Startds {
		left = append(left, n.Startds[i].Dir)
	}
	if n.Images != nil && !s.checkpoints {
		left = append(left, n.Images.Dir)
		s.manifest.Left = append(s.manifest.Left, n.Images.Dir+": images and packages (--checkpoints adds them)")
	}
	if len(n.Negotiators) > 1 && n.Negotiator != nil {
		dir := filepath.Join(n.Dir, "negotiator")
		left = append(left, dir)
		s.manifest.Left = append(s.manifest.Left, fmt.Sprintf("%s: the pool has %d negotiators, and the others have "+
			"it: after a restore this one joins them anew (roost cell remove, roost cell add)", dir,
			len(n.Negotiators)))
	}
	if q := n.CellQueue; q != nil && len(q.Members) > 1 {
		dir := filepath.Join(n.Dir, "cell-queue")
		left = append(left, dir)
		s.manifest.Left = append(s.manifest.Left, fmt.Sprintf("%s: the queue of the cell has %d members, and the "+
			"others have it", dir, len(q.Members)))
	}
	s.seen = map[string]bool{}
	roots := []string{n.Dir, filepath.Dir(n.File)}
	if t := n.TLS; t != nil {
		roots = append(roots, t.CA, t.Certificate, t.Key)
	}
	if n.Authority != nil {
		roots = append(roots, n.Authority.Dir)
	}
	if n.Accountant != nil && n.Accountant.Dir != "" {
		roots = append(roots, n.Accountant.Dir)
	}
	for _, root := range roots {
		if err := s.copyTree(root, left); err != nil {
			return err
		}
	}
	slices.SortFunc(s.manifest.Files, func(a, b StoredFile) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// copyTree copies a file, or a directory with all below it but what is left out. Sockets
// and other special files are passed over.
func (s *selection) copyTree(root string, left []string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // a process that goes on has removed it
			return nil
		case err != nil:
			return err
		case slices.Contains(left, path) && d.IsDir():
			return fs.SkipDir
		case slices.Contains(left, path):
			return nil
		case s.seen[path]:
			return nil
		}
		s.seen[path] = true
		if err := s.copyEntry(path, d); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

func (s *selection) copyEntry(path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	t := info.Sys().(*syscall.Stat_t)
	file := StoredFile{Path: path, Mode: info.Mode() &^ (fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky),
		UID: int(t.Uid), GID: int(t.Gid)}
	to := s.copyPath(path)
	switch file.Mode.Type() {
	case fs.ModeDir:
		err = os.MkdirAll(to, 0o700)
	case fs.ModeSymlink:
		file.Link, err = os.Readlink(path)
	case 0:
		if err = os.MkdirAll(filepath.Dir(to), 0o700); err == nil {
			file.Size, err = copyFile(path, to)
		}
	default:
		return nil
	}
	if err != nil {
		return err
	}
	s.manifest.Files = append(s.manifest.Files, file)
	return nil
}

// copyPath returns where the copy of a file is.
func (s *selection) copyPath(path string) string { return filepath.Join(s.copies, "files", path) }

// copyFile copies a regular file, where the file system can by sharing its blocks.
func copyFile(from, to string) (size int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		info, err := out.Stat()
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	return io.Copy(out, in)
}

// addSums computes the checksums of the copies.
func (s *selection) addSums() error {
	for i := range s.manifest.Files {
		file := &s.manifest.Files[i]
		if !file.Mode.IsRegular() {
			continue
		}
		f, err := os.Open(s.copyPath(file.Path))
		if err != nil {
			return err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		file.Sum = sumText(sum)
	}
	return nil
}

// isBelow reports whether a path is a directory or lies in it.
func isBelow(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
