import numpy as np

from biohash_mini.datasets.odours import load_odours


def test_the_table_has_the_rates_of_110_odours_and_24_receptors():
    odours = load_odours()
    assert odours.rates.shape == (110, 24) and odours.rates.dtype == np.float32 and (odours.rates >= 0).all()
    assert len(set(odours.names)) == 110 and len(set(odours.receptors)) == 24


def test_a_rate_is_the_measured_change_plus_that_in_clean_air():
    odours = load_odours()
    at = list(odours.names).index("ethyl lactate"), list(odours.receptors).index("Or2a")
    assert odours.rates[at] == 39 + 8
    assert odours.rates[list(odours.names).index("putrescine"), 1] == 0  # 17 in clean air, less 36
