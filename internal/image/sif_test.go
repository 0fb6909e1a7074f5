package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/roost-batch/roost"
)

// TestSquashFS compares images of what mksquashfs wrote with the files that it read. They
// are in SIF files and alone, with each compression.
func TestSquashFS(t *testing.T) {
	needTools(t, "mksquashfs")
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	script(t, root, firstLayer+`
head -c 1000000 /dev/zero >zeros; truncate -s 2M sparse; head -c 300000 /bin/bash >program; cp program copy
head -c 131072 /bin/bash >block; head -c 131073 /bin/bash >more; seq 100000 >numbers
python3 -c "import os
for i in range(10, 35): os.setxattr('numbers', 'user.many%d' % i, b'v' * i)"
mkdir many; i=0; while [ $i -lt 600 ]; do echo $i >"many/$i"; i=$((i+1)); done
`)
	// mksquashfs knows of no parts of seconds
	runTool(t, root, "find", ".", "-exec", "touch", "-h", "-d", "2020-02-03 04:05:06", "{}", "+")
	want := describeTree(t, root)
	for i, options := range []string{"-comp gzip", "-comp zstd", "-comp xz", "-comp lz4", "-comp lzo",
		"-comp gzip -b 4096 -no-fragments", "-noI -noD -noF -noX", "-comp gzip -b 1M -always-use-fragments"} {
		t.Run(options, func(t *testing.T) {
			path := filepath.Join(dir, fmt.Sprint(i, ".sqsh"))
			runTool(t, dir, slices.Concat([]string{"mksquashfs", root, path, "-quiet", "-no-progress"},
				strings.Fields(options))...)
			if i == 0 {
				files, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				path = filepath.Join(dir, "image.sif")
				if err := os.WriteFile(path, sifFile(files, sifPartition{sifSquashFS, sifPrimarySystem, ownSIFArch()}),
					0o600); err != nil {
					t.Fatal(err)
				}
			}
			compareMounted(t, path, want)
		})
	}
}

// ownSIFArch is the machine of this program in SIF files.
func ownSIFArch() (arch [3]byte) {
	for number, name := range sifArchitectures() {
		if name == runtime.GOARCH {
			copy(arch[:], number)
		}
	}
	return arch
}

// sifFile is a SIF file with one partition behind two other objects.
func sifFile(files []byte, p sifPartition) []byte {
	const objects, dataAt = 4, 32768
	h := sifHeader{Descriptors: objects, DescriptorsOffset: 4096, DataOffset: dataAt, DataSize: int64(len(files))}
	copy(h.Launch[:], "#!/usr/bin/env run-singularity\n")
	copy(h.Magic[:], sifMagic)
	copy(h.Version[:], "01")
	list := [objects]sifDescriptor{{Type: 0x4001, Used: true, Offset: dataAt}, {Type: sifPartitionType},
		{Type: sifPartitionType, Used: true, Offset: dataAt, Size: int64(len(files))}}
	if _, err := binary.Encode(list[2].Extra[:], binary.LittleEndian, p); err != nil {
		panic(err)
	}
	all := make([]byte, dataAt, dataAt+len(files))
	for at, v := range map[int]any{0: h, 4096: list} {
		if _, err := binary.Encode(all[at:], binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return append(all, files...)
}

// librarySIF is an image that the library of SIF files made (testdata/README), unpacked.
func librarySIF(t testing.TB) []byte {
	t.Helper()
	f, err := os.Open("testdata/library.sif.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func writeTemp(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLibrarySIF reads an image that others made: its environment and its entry point.
func TestLibrarySIF(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: the file is for amd64")
	}
	_, result, err := buildImage(t, testBuilder(t), writeTemp(t, "library.sif", librarySIF(t)))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Env: []string{"GREETING=hello, world", "LC_ALL=C",
		"PATH=/opt/tool/bin:/usr/local/bin:/usr/bin:/bin", "TOOL_ROOT=/opt/tool"},
		Entrypoint: []string{"/.singularity.d/runscript"}}
	if fmt.Sprint(result.Config) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", result.Config, want)
	}
	if len(result.Notes) != 1 || !strings.Contains(result.Notes[0], "NOW=$(date)") {
		t.Errorf("notes: %q", result.Notes)
	}
}

// TestHostileSIF refuses files that are no images, are cut, or are for others.
func TestHostileSIF(t *testing.T) {
	good := librarySIF(t)
	cut := func(n int) []byte { return good[:n] }
	with := func(p sifPartition) []byte { return sifFile([]byte("hsqs"), p) }
	oci := sifFile(nil, sifPartition{})
	binary.LittleEndian.PutUint32(oci[4096:], sifRootIndexType)
	many := slices.Clone(good)
	binary.LittleEndian.PutUint64(many[88:], 1<<40)
	far := sifFile(nil, sifPartition{sifSquashFS, sifPrimarySystem, ownSIFArch()})
	binary.LittleEndian.PutUint64(far[4096+2*585+17:], 1<<62)
	for name, c := range map[string]struct {
		file  []byte
		words string
	}{
		"nothing":           {nil, "too short"},
		"another file":      {bytes.Repeat([]byte("text"), 100), "no SIF file"},
		"a cut header":      {cut(100), "too short"},
		"a cut list":        {cut(5000), "list of objects ends"},
		"a cut file system": {cut(len(good) - 5000), "ends within its file system"},
		"far away":          {far, "ends within its file system"},
		"many objects":      {many, "objects"},
		"no file system":    {sifFile(nil, sifPartition{}), "no file system"},
		"encrypted":         {with(sifPartition{sifEncrypted, sifPrimarySystem, ownSIFArch()}), "encrypted"},
		"ext3":              {with(sifPartition{2, sifPrimarySystem, ownSIFArch()}), "no SquashFS"},
		"another machine":   {with(sifPartition{sifSquashFS, sifPrimarySystem, [3]byte{'1', '1'}}), "linux/s390x"},
		"no machine":        {with(sifPartition{sifSquashFS, sifPrimarySystem, [3]byte{'x'}}), `"x"`},
		"OCI":               {oci, "OCI-SIF"},
		"a short partition": {with(sifPartition{sifSquashFS, sifPrimarySystem, ownSIFArch()}),
			"not in the file system"},
	} {
		_, _, err := buildImage(t, testBuilder(t), writeTemp(t, "a.sif", c.file))
		if !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: got %v, want it refused with %q", name, err, c.words)
		}
	}
	if _, _, err := buildImage(t, testBuilder(t), "/nowhere/a.sif"); !errors.Is(err, roost.NoInput) {
		t.Errorf("no file: got %v", err)
	}
}

// TestTreeImage makes an image of a directory that is a root.
func TestTreeImage(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"bin/tool": "#!/bin/sh\n",
		".singularity.d/runscript":             "#!/bin/sh\n",
		".singularity.d/env/90-environment.sh": "export A=1\n"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	_, result, err := buildImage(t, testBuilder(t), "dir:"+link)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(result.Config.Env, result.Config.Entrypoint); got != "[A=1] [/.singularity.d/runscript]" {
		t.Errorf("got %s", got)
	}
	for _, wrong := range []string{"dir:/nowhere", "dir:" + filepath.Join(dir, "bin/tool")} {
		if _, _, err := buildImage(t, testBuilder(t), wrong); !errors.Is(err, roost.NoInput) {
			t.Errorf("%s: got %v", wrong, err)
		}
	}
}
