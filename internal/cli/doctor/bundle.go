package doctor

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/master"
	"github.com/roost-batch/roost/internal/release"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Bounds of a bundle.
const (
	maxBundleLog  = 1 << 20 // the end of a log
	maxBundleLogs = 300
	maxBundleAds  = 5000
	maxBundleText = 4 << 20 // any other entry
	metricsTime   = 3 * time.Second
)

// bundle is the texts that say what is wrong with a node, in the order of the archive.
// All of them go through the redactor.
type bundle struct {
	redact *redactor
	names  []string
	texts  map[string]string
	notes  []string // what is missing, and why
}

// add adds a text, without what may be a secret in it.
func (b *bundle) add(name, text string) {
	if len(text) > maxBundleText {
		text = text[:maxBundleText]
		b.notes = append(b.notes, name+": only its first part is here")
	}
	if _, ok := b.texts[name]; !ok {
		b.names = append(b.names, name)
	}
	b.texts[name] = b.redact.text(text)
}

// addJSON adds a value. The texts in it lose their secrets before JSON escapes them, as
// an escape can hide where a word begins.
func (b *bundle) addJSON(name string, value any) {
	text, err := json.Marshal(value)
	var parts any
	if err == nil {
		err = json.Unmarshal(text, &parts)
	}
	if err == nil {
		text, err = json.MarshalIndent(b.redactTexts(parts), "", "  ")
	}
	if err != nil {
		b.notes = append(b.notes, name+": "+err.Error())
		return
	}
	b.add(name, string(text)+"\n")
}

// redactTexts returns decoded JSON with all its texts redacted.
func (b *bundle) redactTexts(value any) any {
	switch v := value.(type) {
	case string:
		return b.redact.text(v)
	case []any:
		for i := range v {
			v[i] = b.redactTexts(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = b.redactTexts(v[name])
		}
	}
	return value
}

// writeBundle collects what says how this node and the pool are, and writes one archive.
// Jobs are not in it: neither their ads nor their environments and arguments.
func writeBundle(c *frame.Invocation, file string, findings []checkResult, n *config.Node) error {
	b := &bundle{redact: newRedactor(), texts: map[string]string{}}
	b.addJSON("doctor.json", findings)
	b.addJSON("version.json", release.Own())
	b.addAds(c)
	b.addKernel()
	if n == nil {
		b.notes = append(b.notes, "this user can read no node file here: there are no logs, settings and metrics")
	} else {
		b.addNode(n)
	}
	b.addJSON("manifest.json", map[string]any{"v": document.Version, "roost": roost.Version,
		"at": c.Now().UTC().Format(time.RFC3339), "files": slices.Clone(b.names), "notes": b.notes})
	path := c.AbsolutePath(file)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return frame.KindErrorf(roost.NoOutput, "%s is there already; name another file",
			document.PrintableText(file))
	} else if err != nil {
		return frame.KindErrorf(roost.NoOutput, "%v", err)
	}
	if err := errors.Join(b.write(f, c.Now()), f.Close()); err != nil {
		os.Remove(path)
		return frame.KindErrorf(roost.NoOutput, "%s: %v", document.PrintableText(file), err)
	}
	fmt.Fprintf(c.Stderr, "%s has %d files. What may be a secret was removed; look at it before you send it: "+
		"names of users, jobs and hosts are in it\n", document.PrintableText(file), len(b.names))
	for _, note := range b.notes {
		fmt.Fprintf(c.Stderr, "not in it: %s\n", document.PrintableText(note))
	}
	return nil
}

// write writes the archive, below one folder.
func (b *bundle) write(w io.Writer, now time.Time) error {
	zip := gzip.NewWriter(w)
	archive := tar.NewWriter(zip)
	folder := "roost-bundle-" + now.UTC().Format("20060102-150405") + "/"
	for _, name := range b.names {
		text := b.texts[name]
		if err := archive.WriteHeader(&tar.Header{Name: folder + name, Mode: 0o600, Size: int64(len(text)),
			ModTime: now, Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := io.WriteString(archive, text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zip.Close())
}

// addAds adds what the daemons of the pool say of themselves.
func (b *bundle) addAds(c *frame.Invocation) {
	texts, err := c.QueryAds(&scheddapi.AdQuery{Limit: maxBundleAds})
	if err != nil {
		b.notes = append(b.notes, "ads.txt: "+firstLine(frame.ErrorText(err)))
		return
	}
	var all strings.Builder
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			continue
		}
		if kind, _ := ad.Str(roost.AttrMyType); strings.EqualFold(kind, "Job") {
			continue
		}
		ad.Delete(roost.AttrClaims) // whose tasks run there, and what they are
		all.WriteString(strings.TrimRight(ad.Old(), "\n") + "\n\n")
	}
	b.add("ads.txt", all.String())
}

// addNode adds the settings, logs, processes and metrics of a node.
func (b *bundle) addNode(n *config.Node) {
	b.addFile("etc/node.hcl", n.File, maxBundleText)
	if n.Owner.File != "" {
		b.addFile("etc/owner.hcl", n.Owner.File, maxBundleText)
	}
	b.addFile("run/master.json", filepath.Join(n.RunDir(), "master.json"), maxBundleText)
	b.addFile("run/log-levels.json", daemon.LogLevelsPath(n.RunDir()), maxBundleText)
	logs, _ := filepath.Glob(filepath.Join(n.LogDir(), "*.log*"))
	slices.Sort(logs)
	for _, path := range logs[:min(len(logs), maxBundleLogs)] {
		b.addFile("log/"+filepath.Base(path), path, maxBundleLog)
	}
	if len(logs) > maxBundleLogs {
		b.notes = append(b.notes, fmt.Sprintf("%d more logs", len(logs)-maxBundleLogs))
	}
	b.addSizes(n)
	state, running, err := master.ReadState(n.Dir)
	if err != nil || !running {
		b.notes = append(b.notes, "processes: no master runs here")
		return
	}
	var processes strings.Builder
	for _, d := range state.Daemons {
		if d.PID == 0 {
			continue
		}
		status := readBounded("/proc/"+strconv.Itoa(d.PID)+"/status", 8<<10)
		fmt.Fprintf(&processes, "%s %s\n%s\n", d.Role, d.Name, status)
		b.addMetrics(n, d)
	}
	b.add("processes.txt", processes.String())
}

// addFile adds the last bytes of a file.
func (b *bundle) addFile(name, path string, most int64) {
	f, err := os.Open(path)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			b.notes = append(b.notes, name+": "+err.Error())
		}
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	skipped := max(0, info.Size()-most)
	text, err := io.ReadAll(io.NewSectionReader(f, skipped, most))
	if err != nil {
		b.notes = append(b.notes, name+": "+err.Error())
		return
	}
	if skipped > 0 {
		// The first line may lack its begin, by which a secret would be known as one.
		_, rest, _ := strings.Cut(string(text), "\n")
		text = []byte(fmt.Sprintf("(the first %d bytes are left out)\n", skipped) + rest)
	}
	b.add(name, string(text))
}

// addSizes adds how large the files of the node are. Their contents are left out.
func (b *bundle) addSizes(n *config.Node) {
	var list strings.Builder
	const most = 2000
	count := 0
	filepath.WalkDir(n.Dir, func(path string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel(n.Dir, path)
		if err != nil || strings.Count(name, "/") > 2 {
			return filepath.SkipDir
		}
		if info, err := d.Info(); err == nil && count < most {
			count++
			fmt.Fprintf(&list, "%s %12d %s\n", info.Mode(), info.Size(), name)
		}
		return nil
	})
	var fs unix.Statfs_t
	if unix.Statfs(n.Dir, &fs) == nil {
		fmt.Fprintf(&list, "file system: %d of %d bytes free, %d of %d inodes\n", fs.Bavail*uint64(fs.Bsize),
			fs.Blocks*uint64(fs.Bsize), fs.Ffree, fs.Files)
	}
	b.add("files.txt", list.String())
}

// addMetrics adds the metrics of a daemon that serves them without a key.
func (b *bundle) addMetrics(n *config.Node, d master.DaemonState) {
	address := n.MetricsAddress(strings.ReplaceAll(d.Role, "-", "_"), d.Name)
	if address == "" || n.TLS != nil {
		return
	}
	if host, port, err := net.SplitHostPort(address); err == nil && (host == "" || host == "0.0.0.0" || host == "::") {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	name := "metrics/" + strings.TrimSuffix(d.Role+"-"+d.Name, "-") + ".txt"
	client := &http.Client{Timeout: metricsTime, Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		b.notes = append(b.notes, name+": "+err.Error())
		return
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxBundleText))
	if err != nil || reply.StatusCode != http.StatusOK {
		b.notes = append(b.notes, name+": "+reply.Status)
		return
	}
	b.add(name, string(text))
}

// addKernel adds what the kernel says of this machine.
func (b *bundle) addKernel() {
	for _, path := range []string{"/proc/version", "/proc/uptime", "/proc/loadavg", "/proc/meminfo", "/proc/cgroups",
		"/proc/self/cgroup", "/proc/self/limits", "/proc/filesystems", "/proc/pressure/cpu", "/proc/pressure/io",
		"/proc/pressure/memory", "/sys/fs/cgroup/cgroup.controllers", "/etc/os-release",
		"/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/user/max_user_namespaces",
		"/proc/sys/net/ipv4/ip_local_port_range", "/proc/sys/kernel/yama/ptrace_scope",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns"} {
		if text := readBounded(path, 64<<10); text != "" {
			b.add("kernel"+path, text)
		}
	}
	b.add("kernel/mounts", mountTypes(readBounded("/proc/self/mounts", 256<<10)))
}

// mountTypes are the mount points and types of mounts, without their options: those of
// network file systems may have passwords.
func mountTypes(mounts string) string {
	var list strings.Builder
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) >= 3 {
			fmt.Fprintf(&list, "%s %s\n", f[2], f[1])
		}
	}
	return list.String()
}

// readBounded returns the begin of a file of the kernel, "" if it cannot be read.
func readBounded(path string, most int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, most))
	return string(text)
}
