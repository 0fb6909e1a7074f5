# A host with space for checkpoints. Every server whose node file says
#  checkpoint_server = "10.0.0.9:9704"
# sends its tasks' checkpoints here, and gets them from here. Its certificate is made with
#  roost pki issue /root/pool-ca store checkpoint-server

name = "store"
pool = "physics"

tls {
  ca          = "/etc/roost/ca.pem"
  certificate = "/etc/roost/store.pem"
  key         = "/etc/roost/store.key"
}

checkpoint_server {
  listen   = ["10.0.0.9:9704"]
  dir      = "/srv/checkpoints"
  max_size = "2TiB"
}
