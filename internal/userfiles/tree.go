package userfiles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/roost-batch/roost"
)

// TreeCommand is the first argument of a program that must call ServeTree with the other
// arguments. The report goes to descriptor 3.
const TreeCommand = "files-tree"

// The values of the second argument.
const (
	treePack       = "pack"
	treeUnpack     = "unpack"
	treeUnpackInto = "add"
)

// TreeCount counts what was packed or unpacked.
type TreeCount struct {
	Entries int
	Bytes   int64 // of regular files, without holes
}

// Bounds of a tree.
const (
	maxTreeDepth  = 400
	maxTreeReport = 64 << 10 // bytes
)

// Pack writes the contents of a directory as a tar to w. It includes regular files with
// their holes, directories, symbolic and hard links, and fifos, with modes and times. It
// leaves out sockets, because a program that binds one makes it again, and access lists
// and extended attributes. The program exe does it with the user's rights, as in
// StartAgent; limit bounds the bytes. A file that is removed meanwhile is left out, one
// that shrinks is filled up with zeros. Errors name the file: roost.NoInput if it cannot
// be read, is a device or another user's, roost.Exhausted over a bound, roost.NoOutput if
// w fails.
//
// With patterns of path.Match, only what they match is packed, with everything below. A
// pattern without a special character must match something: otherwise the error is
// roost.NoInput.
func Pack(ctx context.Context, cred UserCredential, exe, dir string, limit int64, w io.Writer,
	patterns ...string) (TreeCount, error) {
	if int(cred.UID) == os.Geteuid() {
		return packTree(dir, limit, patterns, &watchedWriter{ctx, w})
	}
	c, err := treeProcess(ctx, cred, exe, treePack, dir, limit, patterns...)
	if err != nil {
		return TreeCount{}, err
	}
	from, err := c.StdoutPipe()
	if err != nil {
		return TreeCount{}, err
	}
	var copied error
	return c.run(func() {
		// Headers of the tar are added to the limit. The user could stop or trace the
		// agent, so its output is bounded here, too.
		most := limit + limit/4 + 16<<20
		n, err := io.Copy(w, io.LimitReader(from, most))
		if copied = err; err == nil && n == most {
			copied = fmt.Errorf("%s: %w: more than %d bytes", dir, roost.Exhausted, limit)
		}
		from.Close()
	}, &copied)
}

// Unpack empties the directory and fills it with what Pack wrote, with the user's rights.
// Names that lead out of it, devices and files of other users are refused with
// roost.Invalid, more bytes than limit with roost.Exhausted; a file that cannot be made
// is roost.NoOutput. After an error the directory has a part of the tree.
func Unpack(ctx context.Context, cred UserCredential, exe, dir string, limit int64, r io.Reader) (TreeCount, error) {
	return unpackInto(ctx, cred, exe, treeUnpack, dir, limit, r)
}

// UnpackInto is Unpack into a directory that retains its contents, except files with the
// name of one in r.
func UnpackInto(ctx context.Context, cred UserCredential, exe, dir string, limit int64,
	r io.Reader) (TreeCount, error) {
	return unpackInto(ctx, cred, exe, treeUnpackInto, dir, limit, r)
}

func unpackInto(ctx context.Context, cred UserCredential, exe, verb, dir string, limit int64,
	r io.Reader) (TreeCount, error) {
	if int(cred.UID) == os.Geteuid() {
		return unpackTree(dir, limit, verb == treeUnpackInto, &watchedReader{ctx, r})
	}
	c, err := treeProcess(ctx, cred, exe, verb, dir, limit)
	if err != nil {
		return TreeCount{}, err
	}
	to, err := c.StdinPipe()
	if err != nil {
		return TreeCount{}, err
	}
	var copied error
	return c.run(func() {
		_, err := io.Copy(to, r)
		if !errors.Is(err, syscall.EPIPE) { // then the report has the cause
			copied = err
		}
		to.Close()
	}, &copied)
}

// treeCall is a process that packs or unpacks, with its report.
type treeCall struct {
	*exec.Cmd
	ctx         context.Context
	report      *os.File
	processEnds *os.File
}

func treeProcess(ctx context.Context, cred UserCredential, exe, verb, dir string, limit int64,
	patterns ...string) (*treeCall, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("files of uid %d: %w: only root may act for another user", cred.UID,
			roost.PermissionDenied)
	}
	report, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("files agent: %w: %w", err, roost.Unavailable)
	}
	arguments := append([]string{TreeCommand, verb, dir, strconv.FormatInt(limit, 10)}, patterns...)
	c := exec.CommandContext(ctx, exe, arguments...)
	c.Dir, c.Env, c.ExtraFiles = "/", []string{}, []*os.File{theirs}
	c.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, Credential: &syscall.Credential{Uid: cred.UID, Gid: cred.GID, Groups: cred.Groups},
	}
	return &treeCall{c, ctx, report, theirs}, nil
}

// run starts the process, moves the data, and returns the report.
func (c *treeCall) run(move func(), moved *error) (TreeCount, error) {
	defer c.report.Close()
	err := c.Start()
	c.processEnds.Close()
	if err != nil {
		return TreeCount{}, fmt.Errorf("files agent %s: %w: %w", c.Path, err, roost.Unavailable)
	}
	move()
	text, _ := io.ReadAll(io.LimitReader(c.report, maxTreeReport))
	c.Wait()
	var report treeReport
	switch {
	case c.ctx.Err() != nil:
		return TreeCount{}, fmt.Errorf("files agent: %w: %w", context.Cause(c.ctx), roost.Unavailable)
	case *moved != nil:
		return TreeCount{}, fmt.Errorf("files agent: %w: %w", roost.NoOutput, *moved)
	case json.Unmarshal(text, &report) != nil:
		return TreeCount{}, fmt.Errorf("files agent: %w: it ended without a report", roost.Unavailable)
	case report.Error != "":
		return report.Tree, remoteError{report.Error, report.Kind}
	}
	return report.Tree, nil
}

// treeReport is the report of the process at its end.
type treeReport struct {
	Tree  TreeCount
	Error string          `json:",omitempty"`
	Kind  roost.ErrorKind `json:",omitempty"`
}

// remoteError is an error that an agent returned, whose text already has its kind.
type remoteError struct {
	text string
	kind roost.ErrorKind
}

func (t remoteError) Error() string { return t.text }
func (t remoteError) Unwrap() error { return t.kind }

// ServeTree packs a directory to out or unpacks one from in, with the rights of this
// process. It writes the result on report. It is all of the command "files-tree", whose
// arguments are the verb, the directory, the limit, and patterns of what is packed.
func ServeTree(args []string, in io.Reader, out, report io.Writer) error {
	if len(args) < 3 || len(args) > 3 && args[0] != treePack {
		return fmt.Errorf("%w: a daemon starts this", roost.Usage)
	}
	limit, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return fmt.Errorf("%w: limit %q", roost.Usage, args[2])
	}
	var tree TreeCount
	switch args[0] {
	case treePack:
		tree, err = packTree(args[1], limit, args[3:], out)
	case treeUnpack, treeUnpackInto:
		tree, err = unpackTree(args[1], limit, args[0] == treeUnpackInto, in)
	default:
		return fmt.Errorf("%w: %q", roost.Usage, args[0])
	}
	answer := treeReport{Tree: tree}
	if err != nil {
		r := errorReply(0, err)
		answer.Error, answer.Kind = r.Error, r.Kind
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	_, err = io.Copy(report, bytes.NewReader(text))
	return err
}

// watchedWriter fails when the context has ended; so does watchedReader.
type watchedWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.w.Write(p)
}

type watchedReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *watchedReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
