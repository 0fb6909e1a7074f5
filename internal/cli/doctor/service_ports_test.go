package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost/internal/config"
)

// TestServicePorts compares ranges of ports with settings of a kernel.
func TestServicePorts(t *testing.T) {
	for _, c := range []struct {
		outgoing, reserved string
		ports              config.PortRange
		level              checkLevel
		text               string
	}{
		{"32768\t60999\n", "\n", config.PortRange{}, levelOK, "tasks have ports of 20000-32767"},
		{"16000 60999", "", config.PortRange{}, levelError, "from 20000-32767 of these"},
		{"30000 60999", "", config.PortRange{}, levelError, "from 30000-32767 of these"},
		{"30000 60999", "8080,20000-32767\n", config.PortRange{}, levelOK, "30000-32767 are reserved"},
		{"30000 60999", "30000-32766", config.PortRange{}, levelError, "from 30000-32767 of these"},
		{"30000 60999", "30000-31000,31001-32767,x", config.PortRange{}, levelOK, "are reserved"},
		{"32768 60999", "", config.PortRange{First: 40000, Last: 41000}, levelError, "from 40000-41000 of these"},
		{"1024 65535", "1-65535", config.PortRange{First: 40000, Last: 65535}, levelOK, "are reserved"},
		{"what", "", config.PortRange{}, levelWarning, "ip_local_port_range has"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"ip_local_port_range": c.outgoing,
			"ip_local_reserved_ports": c.reserved} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n := &config.Node{TLS: &config.TLSFiles{}, Startds: []config.StartdSettings{{Ports: c.ports}, {Ports: c.ports}}}
		found := examinePorts(n, dir)
		if len(found) != 1 {
			t.Fatalf("%q: got %+v", c.outgoing, found)
		}
		expect(t, c.outgoing+c.reserved, found[0], c.level, c.text)
		if n.TLS = nil; c.level == levelError {
			expect(t, "a pool of one host", examinePorts(n, dir)[0], levelWarning, c.text)
		}
	}
	if found := examinePorts(&config.Node{}, "/nonexistent"); len(found) != 0 {
		t.Errorf("a node without startds: %+v", found)
	}
	found := examinePorts(&config.Node{Startds: make([]config.StartdSettings, 1)}, t.TempDir())
	expect(t, "no such kernel", found[0], levelWarning, "it is not known")
}
