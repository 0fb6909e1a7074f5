// Command roost-starter is the parent of a claim's tasks. A startd runs it; see
// roost-starter(8).
package main

import "github.com/roost-batch/roost/startd/starter"

func main() { starter.Main() }
