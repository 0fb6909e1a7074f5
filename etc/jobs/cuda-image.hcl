# A program on a GPU, in a container image with the CUDA libraries. The driver is the
# machine's: its libraries and nvidia-smi are in the image's /usr/local/nvidia.

job "cuda" {
  image  = "docker://docker.io/nvidia/cuda:12.6.3-runtime-ubuntu24.04"
  gpus   = 1
  memory = "4GiB"
  script = "nvidia-smi; ldconfig -p | grep cudart"
}
