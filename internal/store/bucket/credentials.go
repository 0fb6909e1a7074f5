package bucket

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/roost-batch/roost"
)

// accessKey is who the object store takes Roost for.
type accessKey struct{ key, secret, token string }

// maxCredentialsFile is the most bytes of a file with credentials.
const maxCredentialsFile = 16 << 10

// readCredentials reads a file in the form of ~/.aws/credentials: its section [default],
// or what is before any section. Nobody else may have rights to the file.
func readCredentials(path string) (a accessKey, err error) {
	f, err := os.Open(path)
	if err != nil {
		return a, fmt.Errorf("credentials_file: %w: %w", roost.BadConfig, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return a, fmt.Errorf("credentials_file: %w: %w", roost.BadConfig, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return a, fmt.Errorf("credentials_file %s: %w: others than its owner have rights to it (%v): chmod 600 %s",
			path, roost.BadConfig, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxCredentialsFile))
	if err != nil {
		return a, fmt.Errorf("credentials_file: %w: %w", roost.BadConfig, err)
	}
	a = parseCredentials(string(text))
	if a.key == "" || a.secret == "" {
		return a, fmt.Errorf("credentials_file %s: %w: it needs the lines aws_access_key_id = … and "+
			"aws_secret_access_key = …, as in ~/.aws/credentials", path, roost.BadConfig)
	}
	return a, nil
}

func parseCredentials(text string) (a accessKey) {
	isOurs := true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			isOurs = line == "[default]"
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || !isOurs || strings.HasPrefix(line, "#") {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "aws_access_key_id":
			a.key = value
		case "aws_secret_access_key":
			a.secret = value
		case "aws_session_token":
			a.token = value
		}
	}
	return a
}
