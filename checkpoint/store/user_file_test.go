package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// userFile is a file of ann's, who is uid 1000 of n1.
func userFile(text string) UserFileKey {
	sum := sha256.Sum256([]byte(text))
	return UserFileKey{Node: "n1", UID: 1000, Digest: hex.EncodeToString(sum[:])}
}

// inPieces returns a file as it comes, and then an error.
func inPieces(text string, end error) func() ([]byte, error) {
	rest := []byte(text)
	return func() ([]byte, error) {
		if len(rest) == 0 {
			return nil, end
		}
		n := min(len(rest), 3)
		piece := rest[:n]
		rest = rest[n:]
		return piece, nil
	}
}

func openFileStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestUserFile checks that a file is stored whole or not at all, under its digest.
func TestUserFile(t *testing.T) {
	broken := errors.New("broken off")
	const text = "#!/bin/sh\necho a script\n"
	for _, c := range []struct {
		name string
		key  UserFileKey
		size int64
		sent string
		end  error
		want error
	}{
		{"whole", userFile(text), int64(len(text)), text, io.EOF, nil},
		{"empty", userFile(""), 0, "", io.EOF, nil},
		{"broken off", userFile(text), int64(len(text)), text[:7], broken, broken},
		{"short", userFile(text), int64(len(text)), text[:7], io.EOF, roost.Invalid},
		{"long", userFile(text), int64(len(text)) - 4, text, io.EOF, roost.Invalid},
		{"another", userFile("another"), int64(len(text)), text, io.EOF, roost.Invalid},
		{"negative", userFile(text), -1, text, io.EOF, roost.Invalid},
		{"more than the user may have", userFile(text), 101, text, io.EOF, roost.Exhausted},
		{"a path", UserFileKey{"..", 1000, userFile(text).Digest}, int64(len(text)), text, io.EOF, roost.Invalid},
		{"no digest", UserFileKey{"n1", 1000, "../../passwd"}, int64(len(text)), text, io.EOF, roost.Invalid},
	} {
		s := openFileStore(t)
		s.MaxBytesOfUser = 100
		if err := s.ReceiveUserFile(c.key, c.size, inPieces(c.sent, c.end)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		f, err := s.OpenUserFile(c.key)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s: opened: %v", c.name, err)
		}
		if err == nil {
			got, rerr := io.ReadAll(f)
			if f.Close(); rerr != nil || string(got) != c.sent {
				t.Errorf("%s: it has %q, %v", c.name, got, rerr)
			}
		}
		if left, err := filepath.Glob(filepath.Join(s.dir, userFilesDir, "*", "*", "*"+partialSuffix)); err != nil ||
			len(left) > 0 {
			t.Errorf("%s: %v is left", c.name, left)
		}
		if s.incomingBytes != 0 || len(s.incomingOfUser) != 0 {
			t.Errorf("%s: room is still reserved", c.name)
		}
	}
}

// TestUserFileBound checks that each user has a bound of their own. Files on their way
// count, and a file that is there costs nothing again.
func TestUserFileBound(t *testing.T) {
	s := openFileStore(t)
	s.MaxBytesOfUser = 10
	put := func(k UserFileKey, text string) error {
		return s.ReceiveUserFile(k, int64(len(text)), inPieces(text, io.EOF))
	}
	var during error
	first := inPieces("sixsix", io.EOF)
	if err := s.ReceiveUserFile(userFile("sixsix"), 6, func() ([]byte, error) {
		if during == nil {
			during = put(userFile("five5"), "five5")
		}
		return first()
	}); err != nil || !errors.Is(during, roost.Exhausted) {
		t.Errorf("the first: %v; one beside it: %v", err, during)
	}
	if err := put(userFile("five5"), "five5"); !errors.Is(err, roost.Exhausted) {
		t.Errorf("11 bytes of 10: %v", err)
	}
	if err := put(userFile("sixsix"), "sixsix"); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := put(userFile("four"), "four"); err != nil {
		t.Errorf("10 bytes of 10: %v", err)
	}
	other := userFile("five5")
	other.UID = 1001
	if err := put(other, "five5"); err != nil {
		t.Errorf("another user: %v", err)
	}
	other.UID, other.Node = 1000, "n2"
	if err := put(other, "five5"); err != nil {
		t.Errorf("the same uid of another node: %v", err)
	}
	if used, err := s.UsedBytes(); err != nil || used != 20 {
		t.Errorf("used: %d, %v", used, err)
	}
}

// TestExpireUserFiles checks which files go, and that images and files leave each other
// alone.
func TestExpireUserFiles(t *testing.T) {
	s := openFileStore(t)
	image := ImageKey{Schedd: "n1", Job: 1, Attempt: 1, Sequence: 1}
	if err := s.Write(image, func(w io.Writer) error { _, err := w.Write([]byte("image")); return err }); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"old", "kept", "new"} {
		if err := s.ReceiveUserFile(userFile(text), int64(len(text)), inPieces(text, io.EOF)); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-time.Hour)
	for _, text := range []string{"old", "kept"} {
		path, err := s.userFilePath(userFile(text))
		if err == nil {
			err = os.Chtimes(path, past, past)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.RetainUserFile(userFile("kept")); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Sweep(func(ImageKey) bool { return true }); n != 0 || err != nil {
		t.Errorf("the sweep of images: %d, %v", n, err)
	}
	if n, err := s.Expire(time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("old images: %d, %v", n, err)
	}
	if n, err := s.ExpireUserFiles(time.Now().Add(-time.Minute)); n != 1 || err != nil {
		t.Errorf("old files: %d, %v", n, err)
	}
	for text, want := range map[string]error{"old": roost.NotFound, "kept": nil, "new": nil} {
		if err := s.RetainUserFile(userFile(text)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}
