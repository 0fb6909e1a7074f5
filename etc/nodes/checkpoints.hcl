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

  # Container images and packages move to an object store, if there is one. The file has
  # lines as in ~/.aws/credentials, and mode 600.
  # objects {
  #   endpoint         = "https://s3.example.org"
  #   bucket           = "roost"
  #   prefix           = "physics"
  #   credentials_file = "/etc/roost/objects.credentials"
  #   cache_size       = "500GiB"
  # }
}
