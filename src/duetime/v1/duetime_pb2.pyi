from duetime.v1 import deliveries_pb2 as _deliveries_pb2
from duetime.v1 import intents_pb2 as _intents_pb2
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor
