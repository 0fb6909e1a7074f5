package enroll

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/ca"
	"github.com/roost-batch/roost/internal/identity/caclient"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// PilotOptions describes a pilot.
type PilotOptions struct {
	Dir       string       // of its own, for everything that it stores; private and empty
	Authority string       // HOST:PORT
	Token     ca.JoinToken //
	Host      string       // name of the machine, for its own name and for display
	Until     time.Time    // when it has to be gone; zero: unknown
	AnyLength bool         // tasks may begin that end later
	Resources roost.Resources
	Idle      time.Duration // without tasks, after which it ends
	FirstIdle time.Duration // likewise before its first task
	Provider  string
	Key       string
}

// JoinPilot makes a key, has it certified, and writes the node file of a pilot. The node
// has one startd and nothing else. JoinPilot starts nothing.
func JoinPilot(ctx context.Context, p PilotOptions) (*config.Node, error) {
	door, err := caclient.Connect(ctx, p.Authority, p.Token)
	if err != nil {
		return nil, err
	}
	defer door.Close()
	_, ahead, err := door.CheckClock(ctx)
	if err != nil {
		return nil, err
	}
	files := &config.TLSFiles{CA: filepath.Join(p.Dir, "ca.pem"), Certificate: filepath.Join(p.Dir, "node.pem"),
		Key: filepath.Join(p.Dir, "node.key")}
	request, err := pki.Request(files.Key)
	if err != nil {
		return nil, err
	}
	life := time.Duration(0)
	if !p.Until.IsZero() {
		life = max(time.Until(p.Until), time.Minute)
	}
	reply, err := door.JoinPilot(ctx, p.Token, pilotName(p.Key, p.Host), life, request)
	if err != nil {
		return nil, err
	}
	owner, err := roost.ParsePilotOwner(reply.GetOwner())
	if err != nil {
		return nil, err
	}
	if err := errors.Join(pki.SaveAuthority(files, door.Authority),
		pki.SaveCertificate(files, reply.GetCertificate())); err != nil {
		return nil, err
	}
	n := &config.Node{Name: reply.GetName(), Pool: reply.GetPool(), Dir: p.Dir, TLS: files,
		Collectors: reply.GetCollectors(), ImageServer: reply.GetCheckpointServer(), AuthorityAt: reply.GetAuthority(),
		Owner: config.OwnerFile{File: filepath.Join(p.Dir, "owner.hcl")}}
	d := config.StartdSettings{Name: n.Name, Listen: []string{config.ListenRelay}, Resources: p.Resources,
		Pilot: &config.PilotSettings{Owner: owner, Idle: p.Idle, FirstIdle: p.FirstIdle, Provider: p.Provider,
			Key: p.Key, Host: p.Host}}
	if !p.Until.IsZero() {
		d.Pilot.Until = p.Until.Truncate(time.Second).UTC()
		if !p.AnyLength {
			d.Pilot.PoolUntil = p.Until.Add(ahead).Truncate(time.Second).UTC()
		}
	}
	n.Startds = []config.StartdSettings{d}
	file := filepath.Join(p.Dir, "node.hcl")
	if err := os.WriteFile(file, config.Write(n), 0o600); err != nil {
		return nil, fmt.Errorf("node file: %w: %w", roost.NoOutput, err)
	}
	return config.Load(file)
}

// maxPilotLabel is the most letters of a key or of a host in the name of a pilot. The
// whole name has at most 64.
const maxPilotLabel = 20

// pilotName returns a name that no other pilot has.
func pilotName(key, host string) string {
	var random [6]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	name := strings.TrimSuffix(ca.PilotPrefix, "-")
	host, _, _ = strings.Cut(host, ".")
	for _, part := range []string{nameLabel(key), nameLabel(host)} {
		if part != "" {
			name += "-" + part
		}
	}
	return name + "-" + hex.EncodeToString(random[:])
}

// nameLabel returns the letters of a text that a node's name may have.
func nameLabel(text string) string {
	text = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return -1
	}, text)
	return text[:min(len(text), maxPilotLabel)]
}

// LeavePilot has the certificate of a pilot revoked, so that nobody can use its key once
// it has ended.
func LeavePilot(ctx context.Context, n *config.Node) error {
	if n.AuthorityAt == "" {
		return nil
	}
	return (&caclient.RemoteAuthority{Addr: n.AuthorityAt, Files: n.TLS}).Leave(ctx)
}

// ReadPilotToken reads a file with the line of roost token --pilots, "HOST:PORT TOKEN".
// Nobody else may read it.
func ReadPilotToken(file string) (authority string, token ca.JoinToken, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", token, fmt.Errorf("token file: %w: %w", roost.NoInput, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", token, fmt.Errorf("token file %s: %w: others may read it (mode %04o): chmod 600 it, and ask for a "+
			"new token if others may have read it", file, roost.PermissionDenied, info.Mode().Perm())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", token, fmt.Errorf("token file: %w: %w", roost.NoInput, err)
	}
	words := strings.Fields(string(text))
	if len(words) != 2 {
		return "", token, fmt.Errorf("token file %s: %w: it should have the line that roost token --pilots prints, an "+
			"address and a token", file, roost.Usage)
	}
	host, port, err := SplitHostPort(words[0])
	if err != nil {
		return "", token, err
	}
	token, err = ca.ParseToken(words[1])
	return joinHostPort(host, port), token, err
}
