package enroll

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/etc"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/man"
)

// InstallOptions describes what is installed on a machine, below Root and Prefix.
type InstallOptions struct {
	NodePaths
	Prefix      string            // absolute; default "/usr/local"
	Program     string            // this program; the others are beside it
	Links       map[string]string // more names of programs, and the program of each
	Completions map[string]string // by shell
}

const defaultPrefix = "/usr/local"

// Install copies programs, manual, completions and units. Unchanged files are left alone,
// and changed ones are replaced atomically, so that it can be repeated, and while daemons
// run. It returns how many files have changed.
func Install(i InstallOptions) (changed int, err error) {
	if i.Prefix == "" {
		i.Prefix = defaultPrefix
	}
	if !filepath.IsAbs(i.Prefix) {
		return 0, fmt.Errorf("prefix %s: %w: it is not absolute", i.Prefix, roost.Usage)
	}
	var files []installedFile
	if files, err = i.files(); err != nil {
		return 0, err
	}
	for _, f := range files {
		fresh, err := f.writeTo(i.resolve(filepath.Join(i.Prefix, f.path)))
		if err != nil {
			return changed, err
		}
		changed += fresh
	}
	for name, program := range i.Links {
		path := i.resolve(filepath.Join(i.Prefix, "bin", name))
		if to, err := os.Readlink(path); err == nil && to == program {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return changed, fmt.Errorf("%s: %w: %w", path, roost.NoOutput, err)
		}
		if err := os.Symlink(program, path); err != nil {
			return changed, fmt.Errorf("%s: %w: %w", path, roost.NoOutput, err)
		}
		changed++
	}
	return changed, nil
}

// programNames are the programs, which lie beside each other.
func programNames() []string {
	return []string{"roost", "roost-accountant", "roost-daemon", "roost-negotiator", "roost-node", "roost-q",
		"roost-ranks", "roost-sim", "roost-starter", "roost-web", passwordProgram}
}

// passwordProgram is there only where it could be built, with the headers of libpam.
const passwordProgram = "roost-pam"

// MissingPrograms returns the programs that each node needs and the directory lacks.
// Packages have those that only some nodes need for themselves.
func MissingPrograms(dir string) (missing []string) {
	for _, name := range []string{"roost", "roost-daemon", "roost-negotiator", "roost-node", "roost-q", "roost-ranks",
		"roost-starter"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// installedFile is one file below the prefix.
type installedFile struct {
	path string
	mode fs.FileMode
	text []byte
}

// files lists the files to install.
func (i InstallOptions) files() (all []installedFile, err error) {
	for _, name := range programNames() {
		from := filepath.Join(filepath.Dir(i.Program), name)
		text, err := os.ReadFile(from)
		if errors.Is(err, fs.ErrNotExist) && name == passwordProgram {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w: it belongs beside roost, where make build and go install of cmd/... "+
				"put it", from, roost.NoInput, err)
		}
		all = append(all, installedFile{"bin/" + name, 0o755, text})
	}
	pages, err := fs.Glob(man.ManualPages, "*")
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		text, err := man.ManualPages.ReadFile(page)
		if err != nil {
			return nil, err
		}
		all = append(all, installedFile{"share/man/man" + strings.TrimPrefix(filepath.Ext(page), ".") + "/" + page,
			0o644, text})
	}
	for shell, path := range map[string]string{"bash": "bash-completion/completions/roost",
		"zsh": "zsh/site-functions/_roost", "fish": "fish/vendor_completions.d/roost.fish"} {
		if text, ok := i.Completions[shell]; ok {
			all = append(all, installedFile{"share/" + path, 0o644, []byte(text)})
		}
	}
	units, err := unitNames()
	if err != nil {
		return nil, err
	}
	for _, name := range units {
		text, err := etc.UnitFiles.ReadFile("systemd/" + name)
		if err != nil {
			return nil, err
		}
		all = append(all, installedFile{"lib/systemd/system/" + name, 0o644,
			bytes.ReplaceAll(text, []byte(defaultPrefix), []byte(i.Prefix))})
	}
	return all, nil
}

// unitNames returns the names of the units in this program.
func unitNames() (names []string, err error) {
	entries, err := etc.UnitFiles.ReadDir("systemd")
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// writeTo writes the file to path, unless it is already there.
func (f installedFile) writeTo(path string) (changed int, err error) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm() == f.mode && info.Size() == int64(len(f.text)) &&
		sameContent(path, f.text) {
		return 0, nil
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
		err = atomicfile.Write(path, f.text, f.mode)
	}
	if errors.Is(err, fs.ErrPermission) {
		return 0, fmt.Errorf("%s: %w: become root for this (sudo), or name another place with --prefix", path,
			roost.PermissionDenied)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %w", path, roost.NoOutput, err)
	}
	return 1, nil
}

func sameContent(path string, text []byte) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	there, err := io.ReadAll(f)
	return err == nil && bytes.Equal(there, text)
}
