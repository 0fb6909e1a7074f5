// Command sbom writes what Go programs are made of: a software bill of materials
// (CycloneDX 1.6, JSON) to its output, or the licenses of their modules into a file.
//
// It reads the list of modules that the linker has put into each program. The same
// programs give the same bytes.
package main

import (
	"bufio"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

func main() {
	version := flag.String("version", "", "version of the programs")
	epoch := flag.Int64("epoch", 0, "instant of the document, in seconds since 1970")
	notices := flag.String("notices", "", "write the licenses of the modules into this file")
	flag.Parse()
	programs, err := readPrograms(flag.Args())
	if err == nil && *notices != "" {
		err = writeNotices(*notices, programs)
	} else if err == nil {
		err = writeDocument(os.Stdout, programs, *version, time.Unix(*epoch, 0).UTC())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// program is one Go program.
type program struct {
	name, digest string // digest: SHA-256, in hexadecimal
	info         *debug.BuildInfo
}

func readPrograms(paths []string) (all []program, err error) {
	for _, path := range paths {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		all = append(all, program{filepath.Base(path), hex.EncodeToString(sum[:]), info})
	}
	slices.SortFunc(all, func(a, b program) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// moduleOf returns the module whose code is used. It may replace the one that is named.
func moduleOf(m *debug.Module) *debug.Module {
	if m.Replace != nil {
		return m.Replace
	}
	return m
}

// modules returns the modules of all programs, by "path@version".
func modules(programs []program) map[string]*debug.Module {
	all := map[string]*debug.Module{}
	for _, p := range programs {
		for _, m := range p.info.Deps {
			m = moduleOf(m)
			all[m.Path+"@"+m.Version] = m
		}
	}
	return all
}

// document is a bill of materials in the format of CycloneDX.
type document struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	PURL    string `json:"purl,omitempty"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// packageURL returns the name of a module in the purl format.
func packageURL(path, version string) string { return "pkg:golang/" + path + "@" + version }

func writeDocument(w io.Writer, programs []program, version string, at time.Time) error {
	d := document{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	d.Metadata.Timestamp = at.Format(time.RFC3339)
	d.Metadata.Component = component{Type: "application", Ref: "roost", Name: "roost", Version: version}
	digests := sha256.New()
	root := dependency{Ref: "roost"}
	used := map[string]bool{}
	for _, p := range programs {
		io.WriteString(digests, p.name+p.digest)
		d.Components = append(d.Components, component{Type: "application", Ref: p.name, Name: p.name,
			Version: version, Hashes: []hash{{"SHA-256", p.digest}}})
		root.DependsOn = append(root.DependsOn, p.name)
		of := dependency{Ref: p.name}
		goRef := packageURL("stdlib", strings.TrimPrefix(p.info.GoVersion, "go"))
		for _, m := range p.info.Deps {
			m = moduleOf(m)
			of.DependsOn = append(of.DependsOn, packageURL(m.Path, m.Version))
		}
		of.DependsOn = append(of.DependsOn, goRef)
		used[goRef] = true
		d.Dependencies = append(d.Dependencies, of)
	}
	d.Dependencies = slices.Insert(d.Dependencies, 0, root)
	all := modules(programs)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		ref := packageURL(m.Path, m.Version)
		d.Components = append(d.Components, component{Type: "library", Ref: ref, Name: m.Path, Version: m.Version,
			PURL: ref})
	}
	for _, ref := range slices.Sorted(maps.Keys(used)) {
		_, goVersion, _ := strings.Cut(ref, "@")
		d.Components = append(d.Components, component{Type: "library", Ref: ref, Name: "stdlib", Version: goVersion,
			PURL: ref})
	}
	d.Serial = serial(digests.Sum(nil))
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(d)
}

// serial makes a UUID of version 8 (RFC 9562) from a digest.
func serial(sum []byte) string {
	id := slices.Clone(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// writeNotices writes the licenses of Go and of all modules in the programs.
func writeNotices(path string, programs []program) error {
	cache, err := goEnv("GOMODCACHE")
	if err != nil {
		return err
	}
	goRoot, err := goEnv("GOROOT")
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, "These programs contain the modules below, under their licenses.")
	if err := writeNotice(w, "Go "+programs[0].info.GoVersion, goRoot); err != nil {
		return err
	}
	all := modules(programs)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := writeNotice(w, name, filepath.Join(cache, filepath.FromSlash(escapePath(name)))); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func goEnv(name string) (string, error) {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// escapePath writes a capital letter as "!" and the small one, as the module cache does.
func escapePath(path string) string {
	var b strings.Builder
	for _, r := range path {
		if 'A' <= r && r <= 'Z' {
			b.WriteByte('!')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// writeNotice writes the license files of one directory. A directory without one is an
// error, because a package would then lack what its license asks for.
func writeNotice(w io.Writer, name, dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	found := false
	for _, entry := range files {
		upper := strings.ToUpper(entry.Name())
		named := slices.ContainsFunc([]string{"LICENSE", "LICENCE", "UNLICENSE", "COPYING", "NOTICE"},
			func(prefix string) bool { return strings.HasPrefix(upper, prefix) })
		if entry.IsDir() || !named || strings.HasSuffix(upper, ".GO") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(w, "\n===== %s: %s\n\n%s", name, entry.Name(), text)
	}
	if !found && name != "Go" && !strings.HasPrefix(name, "Go go") {
		return fmt.Errorf("%s: there is no license in %s", name, dir)
	}
	return nil
}
