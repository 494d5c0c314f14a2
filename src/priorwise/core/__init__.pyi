from priorwise.core.choosing import pick as pick
from priorwise.core.errors import ArgumentError as ArgumentError
from priorwise.core.errors import ArgumentTypeError as ArgumentTypeError
from priorwise.core.errors import MissingCapability as MissingCapability
from priorwise.core.estimates import Estimate as Estimate
from priorwise.core.seen import Seen as Seen
from priorwise.core.serial import Serializable as Serializable
from priorwise.core.streams import Stream as Stream
