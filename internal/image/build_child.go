package image

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/confine"
	"github.com/roost-batch/roost/internal/image/imageref"
)

// Builder builds images in a child process. Layers are read there alone: the child has no
// network, no capabilities, no environment, and no files but those of the image. Whoever
// takes it over gets a file system in which only the task of that image runs.
type Builder struct {
	Program string   // that calls RunChild
	Args    []string // with which it does so
	TempDir string   // for layers that are fetched; empty: the usual one
	Limits  Limits
}

// The bounds of the child.
const (
	childCPU    = 3600    // seconds
	childMemory = 8 << 30 // bytes of writable memory; Go reserves more than it uses
	childFiles  = 64
	childOutput = 3       // the descriptor of the file that it writes
	maxAnswer   = 8 << 20 // bytes
)

// buildRequest is what the child reads.
type buildRequest struct {
	Reference imageref.Reference
	Directory string // of a package, in the place of an image
	AnyCase   bool
	Limits    Limits
}

// buildAnswer is what the child writes.
type buildAnswer struct {
	Result Result
	Error  string          `json:",omitempty"`
	Kind   roost.ErrorKind `json:",omitempty"`
}

// Build writes the file system of an image to an empty file. An image of a registry is
// fetched first, by this process.
func (b Builder) Build(ctx context.Context, r imageref.Reference, out *os.File) (Result, error) {
	if r.Source == imageref.Registry {
		dir, err := os.MkdirTemp(b.TempDir, "roost-image-*")
		if err != nil {
			return Result{}, fmt.Errorf("image %s: %w: %w", r, roost.NoOutput, err)
		}
		defer os.RemoveAll(dir)
		if r, err = fetch(ctx, r, dir, b.Limits); err != nil {
			return Result{}, err
		}
	}
	path, err := filepath.Abs(r.Path)
	if err == nil && r.Source == imageref.Dir { // a link would be no directory
		path, err = filepath.EvalSymlinks(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", roost.NoInput, err)
	}
	if err != nil {
		return Result{}, fmt.Errorf("image %s: %w", r, err)
	}
	r.Path = path
	return b.request(ctx, "image "+r.String(), buildRequest{Reference: r, Limits: b.Limits}, out)
}

// BuildPackage writes the file system of a package to an empty file; see BuildDirectory.
func (b Builder) BuildPackage(ctx context.Context, dir string, anyCase bool, out *os.File) (Result, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // the child may read nothing else
	}
	if err != nil {
		return Result{}, fmt.Errorf("package of %s: %w: %w", dir, roost.NoInput, err)
	}
	return b.request(ctx, "package of "+dir, buildRequest{Directory: dir, AnyCase: anyCase, Limits: b.Limits}, out)
}

// request has the child do something.
func (b Builder) request(ctx context.Context, subject string, r buildRequest, out *os.File) (Result, error) {
	request, err := json.Marshal(r)
	if err != nil {
		return Result{}, err
	}
	text, err := b.run(ctx, request, out)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", subject, err)
	}
	var answer buildAnswer
	if err := json.Unmarshal(text, &answer); err != nil {
		return Result{}, fmt.Errorf("%s: %w: the builder's answer: %w", subject, roost.Internal, err)
	}
	if answer.Error != "" {
		return Result{}, childError{answer.Error, answer.Kind}
	}
	return answer.Result, nil
}

// childError is an error of the child, whose text has its kind already.
type childError struct {
	text string
	kind roost.ErrorKind
}

func (e childError) Error() string { return e.text }
func (e childError) Unwrap() error { return e.kind }

// run runs the child, without a network where the kernel allows that.
func (b Builder) run(ctx context.Context, request []byte, out *os.File) ([]byte, error) {
	attributes := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC}
	if os.Geteuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
	text, err := b.start(ctx, request, out, attributes)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) { // no user namespaces here
		return b.start(ctx, request, out, &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL})
	}
	return text, err
}

func (b Builder) start(ctx context.Context, request []byte, out *os.File, attributes *syscall.SysProcAttr) ([]byte,
	error) {
	cmd := exec.CommandContext(ctx, b.Program, b.Args...)
	cmd.Stdin, cmd.Dir, cmd.SysProcAttr = bytes.NewReader(request), "/", attributes
	cmd.Env = []string{"GOMEMLIMIT=4GiB"}
	cmd.ExtraFiles = []*os.File{out}
	cmd.WaitDelay = time.Second
	answer, complaint := &boundedBuffer{}, &boundedBuffer{}
	cmd.Stdout, cmd.Stderr = answer, complaint
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("builder: %w: %w", roost.Unavailable, err)
	}
	limitErr := limitChild(cmd.Process.Pid, b.Limits)
	if limitErr != nil {
		cmd.Process.Kill()
	}
	err := cmd.Wait()
	switch {
	case limitErr != nil:
		return nil, limitErr
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w: the builder ended: %w: %.1000s", roost.Exhausted, err, complaint.String())
	}
	return answer.Bytes(), nil
}

// limitChild bounds what the child may use.
func limitChild(pid int, limits Limits) error {
	for resource, limit := range map[int]uint64{unix.RLIMIT_CPU: childCPU, unix.RLIMIT_DATA: childMemory,
		unix.RLIMIT_NOFILE: childFiles, unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: uint64(2 * limits.Bytes)} {
		err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: limit, Max: limit}, nil)
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended already
			return fmt.Errorf("builder: limits: %w", err)
		}
	}
	return nil
}

// boundedBuffer is a buffer that refuses to grow for ever.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxAnswer {
		return 0, errors.New("the builder's answer is too long")
	}
	return b.Buffer.Write(p)
}

// RunChild is what the child of a Builder does. It reads a request, gives up its rights,
// writes the image to descriptor 3, and answers.
func RunChild(ctx context.Context, in io.Reader, answer io.Writer) error {
	var request buildRequest
	if err := json.NewDecoder(in).Decode(&request); err != nil {
		return fmt.Errorf("builder: %w: %w", roost.Invalid, err)
	}
	out := os.NewFile(childOutput, "image")
	if out == nil {
		return fmt.Errorf("builder: %w: it has no file to write", roost.Invalid)
	}
	if _, err := confine.Apply(confine.Rights{Read: []string{cmp.Or(request.Directory,
		request.Reference.Path)}}); err != nil {
		return fmt.Errorf("builder: %w", err)
	}
	var result Result
	var err error
	if request.Directory != "" {
		result, err = BuildDirectory(ctx, request.Directory, out, request.Limits, request.AnyCase)
	} else {
		result, err = build(ctx, request.Reference, out, request.Limits)
	}
	reply := buildAnswer{Result: result}
	if err != nil {
		reply.Error, reply.Kind = err.Error(), roost.Internal
		errors.As(err, &reply.Kind)
	}
	return json.NewEncoder(answer).Encode(reply)
}
