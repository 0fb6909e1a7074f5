package backup

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// An archive is a tar file, compressed by gzip. Its first entry is the manifest, which
// has the checksums of all others, in their order.

const (
	manifestName    = "manifest.json"
	manifestVersion = 1
	filesFolder     = "files" // entries are files/DIR/… with the absolute path
	maxManifest     = 256 << 20
)

// Manifest says what is in an archive.
type Manifest struct {
	Version  int           `json:"v"`
	Roost    string        `json:"roost"` // version of the program that wrote it
	Node     string        `json:"node"`
	Pool     string        `json:"pool"`
	At       time.Time     `json:"at"`
	Dir      string        `json:"dir"`       // of what the daemons store
	NodeFile string        `json:"node_file"` // its path
	Schedd   bool          `json:"schedd"`    // the node has one
	Paused   time.Duration `json:"paused_ns"` // for how long the daemons stood still
	Files    []StoredFile  `json:"files"`
	Left     []string      `json:"left_out,omitempty"` // what is not in it, and why
}

// StoredFile is a directory, a regular file or a symbolic link.
type StoredFile struct {
	Path string      `json:"path"` // absolute
	Mode fs.FileMode `json:"mode"` // type and permissions
	UID  int         `json:"uid"`
	GID  int         `json:"gid"`
	Size int64       `json:"size,omitempty"`
	Sum  string      `json:"sha256,omitempty"` // of a regular file, in hexadecimal digits
	Link string      `json:"link,omitempty"`   // of a symbolic link
}

// check refuses a manifest that this program cannot restore.
func (m *Manifest) check() error {
	switch {
	case m.Version > manifestVersion:
		return fmt.Errorf("%w: the archive has format %d, and this is roost %s, which reads format %d: restore it "+
			"with the version that wrote it (%s) or a newer one", roost.Invalid, m.Version, roost.Version,
			manifestVersion, m.Roost)
	case m.Version < 1 || !filepath.IsAbs(m.Dir) || !filepath.IsAbs(m.NodeFile):
		return fmt.Errorf("%w: its manifest names no directory of a node", roost.Invalid)
	}
	for i := range m.Files {
		f := &m.Files[i]
		t := f.Mode.Type()
		if !filepath.IsAbs(f.Path) || filepath.Clean(f.Path) != f.Path || t != 0 && t != fs.ModeDir &&
			t != fs.ModeSymlink || f.Size < 0 || f.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			return fmt.Errorf("%w: its manifest names a file %q that no backup has", roost.Invalid, f.Path)
		}
	}
	return nil
}

// writeArchive writes an archive; open opens the copy of a stored file.
func writeArchive(w io.Writer, m *Manifest, open func(f *StoredFile) (io.ReadCloser, error)) error {
	zip := gzip.NewWriter(w)
	archive := tar.NewWriter(zip)
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: manifestName, Mode: 0o600, Size: int64(len(text)),
		ModTime: m.At, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	if _, err := archive.Write(text); err != nil {
		return err
	}
	for i := range m.Files {
		f := &m.Files[i]
		h := &tar.Header{Name: filesFolder + f.Path, Mode: int64(f.Mode.Perm()), Uid: f.UID, Gid: f.GID, ModTime: m.At,
			Typeflag: tar.TypeReg, Size: f.Size, Linkname: f.Link}
		switch f.Mode.Type() {
		case fs.ModeDir:
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		case fs.ModeSymlink:
			h.Typeflag = tar.TypeSymlink
		}
		if err := archive.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		from, err := open(f)
		if err != nil {
			return err
		}
		_, err = io.Copy(archive, from)
		if err := errors.Join(err, from.Close()); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return errors.Join(archive.Close(), zip.Close())
}

// archiveReader reads an archive, and checks each file against the manifest.
type archiveReader struct {
	Manifest
	zip     io.Reader
	archive *tar.Reader
}

func openArchive(r io.Reader) (*archiveReader, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("%w: it is no archive of roost backup: %w", roost.Invalid, err)
	}
	a := &archiveReader{zip: zip, archive: tar.NewReader(zip)}
	h, err := a.archive.Next()
	if err != nil || h.Name != manifestName || h.Size > maxManifest {
		return nil, fmt.Errorf("%w: it is no archive of roost backup: it does not begin with %s", roost.Invalid,
			manifestName)
	}
	text, err := io.ReadAll(a.archive)
	if err == nil {
		err = json.Unmarshal(text, &a.Manifest)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: its manifest: %w", roost.Invalid, err)
	}
	return a, a.check()
}

// eachFile calls f with each stored file, in the order of the manifest, and its content.
// It is an error if the archive has others, or others' content.
func (a *archiveReader) eachFile(f func(file *StoredFile, content io.Reader) error) error {
	for i := range a.Files {
		file := &a.Files[i]
		h, err := a.archive.Next()
		if err != nil {
			return fmt.Errorf("%w: the archive ends before %s: %w", roost.Invalid, file.Path, err)
		}
		if strings.TrimSuffix(h.Name, "/") != filesFolder+file.Path || h.Size != file.Size {
			return fmt.Errorf("%w: the archive has %q where its manifest has %s", roost.Invalid, h.Name, file.Path)
		}
		sum := sha256.New()
		content := io.TeeReader(a.archive, sum)
		if err := f(file, content); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return fmt.Errorf("%w: %s: %w", roost.Invalid, file.Path, err)
		}
		if file.Mode.IsRegular() && sumText(sum) != file.Sum {
			return fmt.Errorf("%w: %s is damaged in the archive: its checksum is wrong", roost.Invalid, file.Path)
		}
	}
	_, err := a.archive.Next()
	_, rest := io.Copy(io.Discard, a.zip) // its end has a checksum of its own
	if !errors.Is(err, io.EOF) || rest != nil {
		return fmt.Errorf("%w: the archive has more than its manifest names, or is damaged at its end", roost.Invalid)
	}
	return nil
}

func sumText(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
