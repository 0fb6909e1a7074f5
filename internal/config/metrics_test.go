package config

import (
	"strings"
	"testing"
)

func TestMetricsAddresses(t *testing.T) {
	n, err := loadText(t, `
name = "n1"
collector {}
negotiator {}
schedd {}
startd "a" {}
startd "b" {}
metrics {
  schedd     = "127.0.0.1:9713"
  startd     = "[::1]:9714"
  web        = "127.0.0.1:9720"
  accountant = "127.0.0.1:9721"
  checkpoint_server = "127.0.0.1:9722"
  token_file = "token"
  names      = ["n1.example.org"]
  users      = true
}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{{"schedd", "", "127.0.0.1:9713"}, {"startd", "a", "[::1]:9714"},
		{"startd", "b", "[::1]:9715"}, {"startd", "c", ""},
		{"web", "", "127.0.0.1:9720"}, {"accountant", "", "127.0.0.1:9721"},
		{"checkpoint_server", "", "127.0.0.1:9722"},
		{"collector", "", ""}, {"master", "", ""}} {
		if got := n.MetricsAddress(c[0], c[1]); got != c[2] {
			t.Errorf("%s %s: got %q, want %q", c[0], c[1], got, c[2])
		}
	}
	if !n.Metrics.Users {
		t.Errorf("the metrics by user are off")
	}
	if !strings.HasPrefix(n.Metrics.TokenFile, "/") {
		t.Errorf("the token file is %q, want it below the node file's directory", n.Metrics.TokenFile)
	}
	if got := (&Node{}).MetricsAddress("schedd", ""); got != "" {
		t.Errorf("a node without metrics serves them at %q", got)
	}
}

func TestMetricsMistakes(t *testing.T) {
	for text, want := range map[string]string{
		`metrics { schedd = "127.0.0.1:9713" }`: "served to nobody",
		`metrics { token_file = "t" }`:          "names no daemon",
		`metrics {
  schedd = "10.0.0.5:9713"
  token_file = "t"
}`: "no tls block",
		`metrics {
  schedd = "unix:/run/m.sock"
  token_file = "t"
}`: "not a port",
		`metrics {
  schedd = "0.0.0.0:9713"
  token_file = "t"
}`: "names no host",
		`metrics {
  schedd = "127.0.0.1:0"
  token_file = "t"
}`: "not a port",
		`metrics {
  schedd = "127.0.0.1:9714"
  startd = "127.0.0.1:9713"
  token_file = "t"
}`: "two daemons have the address 127.0.0.1:9714",
		`metrics {
  startd = "127.0.0.1:65535"
  token_file = "t"
}`: "no port 1 after",
		`metrics {
  schedd = "127.0.0.1:9713"
  authority = "127.0.0.1:9713"
  token_file = "t"
}`: "authority",
		`metrics {
  web = "10.0.0.5:9715"
  token_file = "t"
}`: "the web block has no certificate",
		`metrics {
  web = "127.0.0.1:9715"
  accountant = "127.0.0.1:9715"
  token_file = "t"
}`: "two daemons have the address 127.0.0.1:9715",
		`metrics {
  schedd = "127.0.0.1:9713"
  token_file = "t"
  names = ["a.example:80"]
}`: "not the name of a host",
		`metrics {
  startd = "127.0.0.1:9714"
  token_file = "t"
  users = true
}`: "no address of the schedd",
	} {
		const rest = "name = \"n1\"\ncollector {}\nnegotiator {}\nschedd {}\nstartd \"a\" {}\nstartd \"b\" {}\n"
		_, err := loadText(t, rest+text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want an error with %q", text, err, want)
		}
	}
}
