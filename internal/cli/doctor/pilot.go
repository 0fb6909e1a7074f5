package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// pilotDialTimeout is how long the pool may take to answer a pilot's machine.
const pilotDialTimeout = 5 * time.Second

// examinePilot finds out what a pilot in this allocation of another batch system could
// do. It asks no pool of this machine.
func examinePilot(c *frame.Invocation) []checkResult {
	var findings []checkResult
	for _, address := range c.StringsFlag("to") {
		findings = append(findings, examineOutbound(c.Context, address, c.Now(), c.Getenv)...)
	}
	if len(findings) == 0 {
		findings = append(findings, checkResult{"connection", levelWarning, "not tried", "name what pilots connect " +
			"to with --to HOST:PORT: the address in the token's file, and the collectors of the pool"})
	}
	findings = append(findings, examineScratch(cmp.Or(c.StringFlag("scratch"), os.TempDir()))...)
	findings = append(findings, examineShare(c.Getenv))
	if os.Geteuid() == 0 {
		findings = append(findings, checkResult{"user", levelWarning, "this is root, and pilots run as a user",
			"run it in an allocation of yours"})
	}
	findings = append(findings, examineCgroups()...)
	return append(findings, examineNamespaces(), checkSandbox(), checkImages(), examineDescriptors())
}

// examineOutbound connects to a daemon of the pool, and compares the clock with its
// certificate. That proves nothing here but when it was made.
func examineOutbound(ctx context.Context, address string, now time.Time, getenv func(string) string) []checkResult {
	ctx, cancel := context.WithTimeout(ctx, pilotDialTimeout)
	defer cancel()
	began := time.Now()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		hint := "have outgoing connections to it allowed, or have a relay of the pool listen where they are allowed"
		if proxy := cmp.Or(getenv("https_proxy"), getenv("HTTPS_PROXY")); proxy != "" {
			hint = "https_proxy is set here, and pilots connect without a proxy: " + hint
		}
		return []checkResult{{"connection", levelError, fmt.Sprintf("%s: %v", address, err), hint}}
	}
	defer conn.Close()
	took := time.Since(began)
	leaf, err := peerCertificate(ctx, conn)
	if err != nil {
		return []checkResult{{"connection", levelError, fmt.Sprintf("%s answers, and not as a daemon of Roost does: %v",
			address, err), "something between may take its place: ask for a way without inspection of TLS"}}
	}
	findings := []checkResult{{"connection", levelOK, fmt.Sprintf("%s answers after %v", address,
		took.Round(time.Millisecond)), ""}}
	const slack = 5 * time.Minute
	if now.Add(slack).Before(leaf.NotBefore) || now.Add(-slack).After(leaf.NotAfter) {
		return append(findings, checkResult{"clock", levelError, fmt.Sprintf("it is %s here, and the certificate of "+
			"%s is valid from %s to %s", now.UTC().Format(time.RFC3339), address,
			leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339)),
			"set the clock of this machine, as with NTP"})
	}
	return append(findings, checkResult{"clock", levelOK, "it goes with the certificate of " + address, ""})
}

// peerCertificate returns the certificate that the other end shows, whoever it is.
func peerCertificate(ctx context.Context, conn net.Conn) (leaf *x509.Certificate, err error) {
	errShown := errors.New("shown")
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2"}, VerifyConnection: func(s tls.ConnectionState) error {
			leaf = s.PeerCertificates[0]
			return errShown
		}})
	if err := client.HandshakeContext(ctx); !errors.Is(err, errShown) {
		return nil, cmp.Or(err, error(roost.Unauthenticated))
	}
	return leaf, nil
}

// maxScratchName is how long the name of a scratch directory may be, in bytes. Sockets
// below it have names of 107 at most.
const maxScratchName = 60

// examineScratch finds out whether a pilot can work below a directory.
func examineScratch(base string) []checkResult {
	const cure = "name another directory with --scratch, or in the provider's settings"
	dir, err := os.MkdirTemp(base, "roost-doctor-")
	if err != nil {
		return []checkResult{{"scratch", levelError, err.Error(), cure}}
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
		return []checkResult{{"scratch", levelError, err.Error(), cure}}
	}
	if err := exec.Command(program).Run(); err != nil {
		text := fmt.Sprintf("no program can be run below %s: %v", base, err)
		if errors.Is(err, syscall.EACCES) {
			text = fmt.Sprintf("no program can be run below %s, which is mounted noexec", base)
		}
		return []checkResult{{"scratch", levelError, text, cure}}
	}
	found := checkResult{"scratch", levelOK, base + " can be used", ""}
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil {
		free := roost.Bytes(fs.Bavail) * roost.Bytes(fs.Bsize)
		found.Text = fmt.Sprintf("%v free in %s", free, base)
		if free < minFreeDisk {
			found.Level, found.Hint = levelWarning, "make room there, or "+cure
		}
	}
	if len(base) > maxScratchName {
		return []checkResult{found, {"scratch", levelWarning, fmt.Sprintf("the name of %s has %d bytes: names of "+
			"sockets below it may be too long", base, len(base)), cure}}
	}
	return []checkResult{found}
}

// examineShare says what of the machine the allocation has.
func examineShare(getenv func(string) string) checkResult {
	cores := runtime.NumCPU() // those that the scheduler of the kernel allows
	text := fmt.Sprintf("%d cores may be used", cores)
	if online, err := os.ReadFile("/sys/devices/system/cpu/online"); err == nil {
		text += ", of those numbered " + strings.TrimSpace(string(online))
	}
	if gpus := cmp.Or(getenv("CUDA_VISIBLE_DEVICES"), getenv("SLURM_JOB_GPUS")); gpus != "" {
		text += "; GPUs " + gpus
	}
	return checkResult{"share", levelOK, text, ""}
}
