package gpudriver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-batch/roost"
)

// Inside is where a task in a container image has the driver. Images that are made for
// GPUs have its directories in PATH and LD_LIBRARY_PATH.
const Inside = "/usr/local/nvidia"

// The directories of the copy, and of the task below Inside.
const (
	libraryDir = "lib64"
	programDir = "bin"
)

// Variables are the environment variables of a task in an image, and what each has to
// name.
func Variables() map[string]string {
	return map[string]string{"PATH": Inside + "/" + programDir, "LD_LIBRARY_PATH": Inside + "/" + libraryDir}
}

// libraryDirs are where distributions have the libraries, below the root.
var libraryDirs = [...]string{"usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/nvidia/current",
	"usr/lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu/nvidia/current", "usr/lib64", "usr/lib64/nvidia",
	"usr/lib", "usr/lib/nvidia", "usr/local/nvidia/lib64", "run/opengl-driver/lib"}

// programDirs are where distributions have the programs, below the root.
var programDirs = [...]string{"usr/bin", "usr/lib/nvidia/current", "usr/local/nvidia/bin", "run/opengl-driver/bin"}

// computeLibrary is the library that every program on a GPU needs.
const computeLibrary = "libcuda"

// libraries are the driver's libraries for computing, by the beginnings of their names.
// They are those of the capabilities compute, utility and video (NVIDIA Container
// Toolkit). Libraries of CUDA itself are the image's.
var libraries = [...]string{computeLibrary, "libcudadebugger", "libnvidia-ml", "libnvidia-cfg", "libnvidia-nvvm",
	"libnvidia-ptxjitcompiler", "libnvidia-gpucomp", "libnvidia-allocator", "libnvidia-opencl",
	"libnvidia-compiler", "libnvidia-pkcs11", "libnvidia-encode", "libnvidia-opticalflow", "libnvcuvid"}

// programs are the driver's programs that tasks use.
var programs = [...]string{"nvidia-smi", "nvidia-debugdump", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"}

// Copier makes a copy of the driver of the machine, when a task needs it. The zero value
// has none. Its methods may be called concurrently.
type Copier struct {
	root      string   // of the machine's files
	libraries []string // directories of libraries
	dir       string   // of the copies

	mu sync.Mutex
}

// NewCopier returns a copier of the driver below a root into a directory of its own. The
// root is / but in tests. A library of the driver that the machine's owner names is in a
// further directory with libraries.
func NewCopier(root, dir, library string) *Copier {
	c := &Copier{root: root, dir: dir}
	if library != "" {
		c.libraries = append(c.libraries, filepath.Dir(library))
	}
	for _, path := range libraryDirs {
		c.libraries = append(c.libraries, filepath.Join(root, path))
	}
	return c
}

// Dir returns the directory with a copy of the present driver. The copy is made once for
// each version of the driver, and those of other versions are removed. It is
// roost.NotFound if the machine has no driver.
func (c *Copier) Dir() (string, error) {
	if c == nil {
		return "", fmt.Errorf("GPU driver: %w: nobody looks for one", roost.NotFound)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	version, err := c.version()
	if err != nil {
		return "", err
	}
	to := filepath.Join(c.dir, version)
	if _, err := os.Stat(to); err == nil {
		return to, nil
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return "", fmt.Errorf("GPU driver: %w", err)
	}
	unfinished := filepath.Join(c.dir, ".new")
	if err := c.copyAll(unfinished); err != nil {
		return "", fmt.Errorf("GPU driver: %w", errors.Join(err, os.RemoveAll(unfinished)))
	}
	if err := os.Rename(unfinished, to); err != nil {
		return "", fmt.Errorf("GPU driver: %w", err)
	}
	return to, nil
}

// version returns the version of the driver, as the name of its library has it.
func (c *Copier) version() (string, error) {
	for _, dir := range c.libraries {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, computeLibrary+".so.1"))
		if err != nil {
			continue
		}
		_, version, _ := strings.Cut(filepath.Base(path), ".so.")
		if version != "" && version != "1" && filepath.IsLocal(version) {
			return version, nil
		}
	}
	return "", fmt.Errorf("GPU driver: %w: %s.so.1 is in none of the usual directories", roost.NotFound,
		computeLibrary)
}

func (c *Copier) copyAll(to string) error {
	for _, dir := range [...]string{libraryDir, programDir} {
		if err := os.MkdirAll(filepath.Join(to, dir), 0o755); err != nil {
			return err
		}
	}
	for _, dir := range c.libraries {
		list, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range list {
			stem, _, isLibrary := strings.Cut(e.Name(), ".so")
			if !isLibrary || !slices.Contains(libraries[:], stem) {
				continue
			}
			if err := copyEntry(filepath.Join(dir, e.Name()), filepath.Join(to, libraryDir)); err != nil {
				return err
			}
		}
	}
	for _, dir := range programDirs {
		for _, name := range programs {
			err := copyEntry(filepath.Join(c.root, dir, name), filepath.Join(to, programDir))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// copyEntry copies a file into a directory. A symbolic link becomes one within the
// directory, and what it leads to is copied, too. What is there already remains.
func copyEntry(path, dir string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if base := filepath.Base(path); base != filepath.Base(real) {
		err := os.Symlink(filepath.Base(real), filepath.Join(dir, base))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return copyFile(real, filepath.Join(dir, filepath.Base(real)))
}

// copyFile copies a regular file, with its right to be executed. The kernel shares the
// blocks where the file system can.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|info.Mode()&0o111)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Chmod(0o644 | info.Mode()&0o111) // whatever the umask is
	}
	return errors.Join(err, out.Close())
}
