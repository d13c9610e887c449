"""What all makers share. Imported before TensorFlow: oneDNN is off from its first use on."""
import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import tensorflow.compat.v1 as tf
from safetensors.numpy import save_file

VERSION = f"TensorFlow {tf.__version__} CPU, float32, oneDNN off"


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def write_tensors(path, tensors, note=""):
    save_file(tensors, path, metadata={"about": VERSION + note})  # one entry: their order varies
    path.chmod(0o644)
